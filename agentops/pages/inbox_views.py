"""Saved views of the list of approvals: keep this one, open with it, take it away. Each belongs to one person."""

import uuid

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agentops.pages import walk
from approvals.services import saved_views
from runs.access import needs, refused, someone_else, user_of

SOMEONE_ELSE = "This page was opened under another login, so nothing was changed."


@require_POST
@needs("approvals.view_approvalrequest")
def view_save(request: HttpRequest) -> HttpResponse:
    """Keep the list that the form names."""
    if someone_else(request):
        return refused(request, reason=SOMEONE_ELSE)
    listing = walk.listing(request)
    name = request.POST.get("name", "")
    problem = saved_views.save(
        user=user_of(request), name=name, query=listing.query(), is_default=request.POST.get("is_default") == "1"
    )
    if problem:
        messages.error(request, f"The view was not kept. {problem}")
    else:
        messages.success(request, f"Kept as “{' '.join(name.split())}”. Only you see it.")
    return redirect(walk.list_url(listing))


@require_POST
@needs("approvals.view_approvalrequest")
def view_default(request: HttpRequest, view_id: uuid.UUID) -> HttpResponse:
    """Open with that view from now on, or, where it is the one already, with none."""
    if someone_else(request):
        return refused(request, reason=SOMEONE_ELSE)
    user = user_of(request)
    view = saved_views.of(user=user).filter(pk=view_id).first()
    if view is None or not saved_views.open_with(user=user, view_id=None if view.is_default else view.pk):
        raise Http404
    said = f"Approvals opens with “{view}” from now on." if not view.is_default else "Approvals opens with everything."
    messages.success(request, said)
    return redirect(walk.list_url(walk.listing(request)))


@require_POST
@needs("approvals.view_approvalrequest")
def view_remove(request: HttpRequest, view_id: uuid.UUID) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason=SOMEONE_ELSE)
    if not saved_views.remove(user=user_of(request), view_id=view_id):
        raise Http404
    messages.success(request, "The view is removed.")
    return redirect(walk.list_url(walk.listing(request)))
