"""The field of a state whose edges are declared with django-fsm's `transition`."""

from collections.abc import Sequence
from typing import Any

from django_fsm import FSMField


class StateField(FSMField):  # type: ignore[misc]  # the library is not followed for types
    """A text column to migrations, which know no edges. As django-fsm's own field each model that migrations build
    would look for the edges of all others."""

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs
