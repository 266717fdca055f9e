"""Django's admin site is for accounts alone: people, and the groups that give them their rights.

Everything else has one way in, through services that lock, check and record. So what other packages put here is taken
out again, and signing in happens on the product's own page, with the second factor.
"""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.models import Group, User

ALLOWED = (User, Group)

for model in [model for model in admin.site._registry if model not in ALLOWED]:
    admin.site.unregister(model)

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]  # the way allauth documents
admin.site.site_header = admin.site.site_title = "agentops accounts"
admin.site.index_title = "People and groups"
