"""The relations of a typed graph: which edge types are one relation, and which the step sees."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from eamp.graph.errors import GraphError

EdgeType: TypeAlias = tuple[str, str, str]
"""Type of the sources, name of the relation, type of the targets, as in ``HeteroData``."""
Relations: TypeAlias = Mapping[EdgeType, float] | Iterable[EdgeType] | None
"""Relations with their weights, or relations that all weigh 1, or ``None`` for all of them."""
Chosen: TypeAlias = dict[EdgeType, tuple[tuple[EdgeType, ...], float]]
"""The directions and the weight of every relation."""

REVERSE = "rev_"  # PyG's ToUndirected puts it before the name of a relation


def merge_directions(edge_types: Iterable[EdgeType]) -> dict[EdgeType, tuple[EdgeType, ...]]:
    """Return the edge types of every relation, under the name of its first direction.

    Two edge types are the two directions of one relation if PyG's ``ToUndirected`` named one after
    the other, or if they are the only ones between two different types of nodes.

    Example:
        >>> merge_directions([("author", "writes", "paper"), ("paper", "written_by", "author")])
        {('author', 'writes', 'paper'): (('author', 'writes', 'paper'),
                                         ('paper', 'written_by', 'author'))}
    """
    known = list(dict.fromkeys(edge_types))
    relations: dict[EdgeType, tuple[EdgeType, ...]] = {}
    merged: set[EdgeType] = set()
    # A relation has the name of the direction that is not called a reverse.
    for edge_type in sorted(known, key=lambda each: each[1].startswith(REVERSE)):
        if edge_type not in merged:
            opposite = opposite_of(edge_type, known)
            relations[edge_type] = (edge_type, *([] if opposite is None else [opposite]))
            merged.update(relations[edge_type])
    return relations


def opposite_of(edge_type: EdgeType, known: list[EdgeType]) -> EdgeType | None:
    """Return the other direction of an edge type, or ``None``."""
    source, name, target = edge_type
    named = (target, REVERSE + name, source)
    if named in known:
        return named
    forth = [each for each in known if (each[0], each[2]) == (source, target)]
    back = [each for each in known if (each[0], each[2]) == (target, source)]
    alone = source != target and len(forth) == len(back) == 1
    return back[0] if alone else None


def check_relations(relations: Any) -> dict[EdgeType, float] | None:
    """Return the weights of chosen relations, after checking that they are relations."""
    if relations is None:
        return None
    hint = "pass for example relations=[('author', 'writes', 'paper')]."
    if isinstance(relations, str) or not isinstance(relations, Iterable):
        raise ValueError(f"relations must be edge types, but is {relations!r}; {hint}")
    pairs = relations.items() if isinstance(relations, Mapping) else ((r, 1.0) for r in relations)
    weights = {}
    for relation, weight in pairs:
        named = isinstance(relation, tuple | list) and len(relation) == 3
        if not named or not all(isinstance(part, str) for part in relation):
            raise ValueError(
                f"a relation is (type of node, name, type of node), but is {relation!r}; {hint}"
            )
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 <= weight < float("inf"):
            raise ValueError(
                f"the weight of the relation {words(tuple(relation))!r} must be a finite number "
                f">= 0, but is {weight!r}."
            )
        weights[tuple(relation)] = float(weight)
    if not weights:
        raise ValueError(f"relations must not be empty; {hint}")
    return weights


def chosen_relations(edge_types: Iterable[EdgeType], relations: Relations = None) -> Chosen:
    """Return the directions and the weight of every relation that is chosen.

    Raises:
        GraphError: if a relation is chosen that does not exist, or one in both directions.
    """
    merged = merge_directions(edge_types)
    weights = check_relations(relations)
    if weights is None:
        return {relation: (types, 1.0) for relation, types in merged.items()}
    name_of = {each: relation for relation, types in merged.items() for each in types}
    chosen: Chosen = {}
    for wanted, weight in weights.items():
        if wanted not in name_of:
            raise GraphError(
                f"there is no relation {words(wanted)!r}; there are "
                f"{', '.join(repr(words(each)) for each in merged)}."
            )
        relation = name_of[wanted]
        if relation in chosen:
            raise GraphError(
                f"{words(wanted)!r} is the other direction of {words(relation)!r}, and both are "
                "one relation; name one of them."
            )
        chosen[relation] = (merged[relation], weight)
    return chosen


def types_of(relation: EdgeType) -> tuple[str, ...]:
    """Return the types of nodes of a relation: two, or one that is related to itself."""
    return (relation[0],) if relation[0] == relation[2] else (relation[0], relation[2])


def words(relation: tuple[Any, ...]) -> str:
    """Return the name of a relation for tables and messages.

    Example:
        >>> words(("author", "writes", "paper"))
        'author writes paper'
    """
    return " ".join(map(str, relation))
