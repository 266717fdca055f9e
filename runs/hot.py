"""The ORM's statements without composing each of them anew, for what every run does many times over.

The ORM writes the SQL of a shape once; after that only values are sent, and rows come back as its objects. What is rare
stays with the ORM itself.
"""

import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from inspect import signature
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import BooleanField, Field, Model, QuerySet
from django.db.models.expressions import DatabaseDefault, RawSQL

M = TypeVar("M", bound=Model)


class Query(Generic[M]):
    """A queryset with places for values: `Query(lambda run: Proposal.objects.filter(run=run))`, asked as
    `query(run=run.pk)`. Whole rows of one model, annotated or not; each value is an id, a text or, where `among` takes
    it, a list of those; never None. `share` holds the rows as they are until the transaction ends."""

    def __init__(self, make: Callable[..., QuerySet[M]], *, share: bool = False) -> None:
        self._make, self._names, self._end = make, tuple(signature(make).parameters), " FOR SHARE" if share else ""
        self._sql, self._parameters = "", ()  # type: tuple[str, tuple[Any, ...]]
        self._model: type[M] | None = None
        self._annotated: tuple[str, ...] = ()

    def __call__(self, **given: Any) -> list[M]:
        if self._model is None:
            self._compose(given)
        assert self._model is not None
        values = [given[one.name] if isinstance(one, _Place) else one for one in self._parameters]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, values)
            rows = cursor.fetchall()
        if not self._annotated:
            return [from_row(model=self._model, row=row) for row in rows]
        count, made = len(self._model._meta.concrete_fields), []
        for row in rows:
            one = from_row(model=self._model, row=row[:count])
            vars(one).update(zip(self._annotated, row[count:], strict=True))
            made.append(one)
        return made

    def first(self, **given: Any) -> M | None:
        """The first row, or None; the queryset has its own order and bound."""
        return next(iter(self(**given)), None)

    def one(self, **given: Any) -> M:
        """The only row. Raises the model's DoesNotExist when there is none."""
        found = self(**given)
        assert self._model is not None
        if not found:
            raise self._model.DoesNotExist(f"no {self._model.__name__} for {given}")  # type: ignore[attr-defined]
        return found[0]

    def _compose(self, given: dict[str, Any]) -> None:
        marks = {name: _mark(given[name], place) for place, name in enumerate(self._names)}
        query = self._make(**marks)
        sql, parameters = query.query.get_compiler(connection=connection).as_sql()
        names = {mark: name for name, mark in marks.items()}
        found = tuple(_Place(names[one]) if isinstance(one, Hashable) and one in names else one for one in parameters)
        if {one.name for one in found if isinstance(one, _Place)} != set(names.values()):
            raise ValueError(f"not every value of {self._names} stands in {sql}")
        self._sql, self._parameters, self._annotated = sql + self._end, found, tuple(query.query.annotation_select)
        self._model = query.model


class _Place:
    def __init__(self, name: str) -> None:
        self.name = name


def _mark(value: Any, place: int) -> Any:
    """A value of the same type that stands nowhere else."""
    if isinstance(value, uuid.UUID):
        return uuid.uuid4()
    return 2_000_000_011 + place if isinstance(value, int) else f"mark {uuid.uuid4()}"


def among(*, column: str, kind: str, values: Any) -> RawSQL:
    """A condition on a column: one of `values`, a place in a `Query` that a list is given for. `kind` is the column's
    type in SQL."""
    return RawSQL(f"{column} = ANY(%s::{kind}[])", [values], output_field=BooleanField())


def array(*, ids: Iterable[uuid.UUID]) -> str:
    """The list of ids as PostgreSQL writes one, for `among`: thousands of them are given to the driver in one piece."""
    return f"{{{','.join(map(str, ids))}}}"


def database() -> str:
    """Which database the connection goes to: what a process keeps of one says nothing of another."""
    at = connection.settings_dict
    return f"{at['HOST']}:{at['PORT']}/{at['NAME']}"


def columns(*, model: type[Model]) -> str:
    """The columns of a model in the order of `from_row`, each with its table."""
    return ", ".join(f'"{model._meta.db_table}"."{one.column}"' for one in model._meta.concrete_fields)


def from_row(*, model: type[M], row: Sequence[Any]) -> M:
    """The object of a row that has all columns in the model's order."""
    names, converters = _shape(model)
    values = list(row)
    for place, convert, expression in converters:
        values[place] = convert(values[place], expression, connection)
    return model.from_db(connection.alias, names, values)


@cache
def _shape(model: type[Model]) -> tuple[list[str], list[tuple[int, Callable[..., Any], Any]]]:
    fields = model._meta.concrete_fields
    converters = [
        (place, convert, one.get_col(model._meta.db_table))
        for place, one in enumerate(fields)
        for convert in one.get_db_converters(connection)
    ]
    return [one.attname for one in fields], converters


def insert(*rows: Model) -> None:
    """As `save` with `force_insert`, all of one model in one statement; what the database gives is set on the rows."""
    fields = rows[0]._meta.concrete_fields
    lines = [[one.pre_save(row, True) for one in fields] for row in rows]
    left_out = tuple(
        one.attname
        for place, one in enumerate(fields)
        if isinstance(lines[0][place], DatabaseDefault) or (one.primary_key and lines[0][place] is None)
    )
    kept = [(place, one) for place, one in enumerate(fields) if one.attname not in left_out]
    with connection.cursor() as cursor:
        cursor.execute(
            _insert(type(rows[0]), left_out, len(rows)),
            [one.get_db_prep_save(line[place], connection) for line in lines for place, one in kept],
        )
        given = cursor.fetchall() if left_out else [()] * len(rows)
    for row, values in zip(rows, given, strict=True):
        for name, value in zip(left_out, values, strict=True):
            setattr(row, name, value)
        row._state.adding, row._state.db = False, connection.alias


@cache
def _insert(model: type[Model], left_out: tuple[str, ...], count: int) -> str:
    kept = [f'"{one.column}"' for one in model._meta.concrete_fields if one.attname not in left_out]
    given = [f'"{one.column}"' for one in model._meta.concrete_fields if one.attname in left_out]
    line = f"({', '.join(['%s'] * len(kept))})"
    sql = f'INSERT INTO "{model._meta.db_table}" ({", ".join(kept)}) VALUES {", ".join([line] * count)}'
    return f"{sql} RETURNING {', '.join(given)}" if given else sql


def sets(*, row: Model, names: Iterable[str]) -> dict[str, Any]:
    """The columns of those fields, each with the value that the row has for it."""
    found = {}
    for name in names:
        field = row._meta.get_field(name)
        assert isinstance(field, Field) and field.column is not None
        found[field.column] = field.get_db_prep_save(field.pre_save(row, False), connection)
    return found


def update(*, row: Model, names: Iterable[str]) -> None:
    """As `save` with `update_fields`. Raises the model's DoesNotExist when the row is not there."""
    changed = sets(row=row, names=names)
    with connection.cursor() as cursor:
        cursor.execute(_update(type(row), tuple(changed)), [*changed.values(), row.pk])
        if cursor.rowcount != 1:
            raise type(row).DoesNotExist(f"{row!r} is not there")  # type: ignore[attr-defined]


@cache
def _update(model: type[Model], named: tuple[str, ...]) -> str:
    sets = ", ".join(f'"{one}" = %s' for one in named)
    assert model._meta.pk is not None
    return f'UPDATE "{model._meta.db_table}" SET {sets} WHERE "{model._meta.pk.column}" = %s'
