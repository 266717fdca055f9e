"""A list of requests as somebody keeps it: filters and order under a name, for that person alone."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.ids import new_id


class SavedView(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, help_text="the list as its address writes it")
    is_default = models.BooleanField(default=False, help_text="what the list of approvals opens with")
    created_at = models.DateTimeField(db_default=Now())
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="saved_view_name_once", fields=["user", "name"], condition=Q(removed_at__isnull=True)
            ),
            models.UniqueConstraint(
                name="saved_view_one_default",
                fields=["user"],
                condition=Q(is_default=True, removed_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.name
