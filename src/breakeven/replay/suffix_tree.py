"""A suffix tree of bounded depth that grows token by token: how often each run of tokens stood, and what followed it.

Nodes hold runs of tokens (path compression) and counts of the suffixes that pass; the tokens stay in the log.
"""

from __future__ import annotations

from breakeven.compiled import bare
from breakeven.replay.siblings import link_last, lower_count, raise_count, replace_among_siblings, unlink
from breakeven.replay.tree_arrays import (
    COUNT,
    FIELDS,
    GROUP,
    HEAD,
    LENGTH,
    NEXT,
    NONE,
    PARENT,
    PREV,
    REF,
    ROOT,
    TAIL,
    Int32,
    Tree,
    enter,
    find,
    free_group,
    free_node,
    leave_table,
    new_node,
    own_group,
    replace_in_table,
)


@bare
def append(tree: Tree, base: Int32, place: int, active: Int32, length: int) -> int:
    """Add the token at ``base[place]`` to the sequence whose open suffixes are ``active[:length]``, the longest first.

    Gives the new number of open suffixes: at most the depth, which is the length of ``active``.
    """
    if length == len(active):
        for i in range(1, length):
            active[i - 1] = active[i]
        length -= 1
    active[length] = ROOT
    tree.nodes[ROOT, COUNT] += 1
    for i in range(length + 1):
        active[i] = _extend(tree, base, place, int(active[i]))
    return length + 1


@bare
def _extend(tree: Tree, base: Int32, place: int, node: int) -> int:
    """Carry a suffix that ends at a node on by the token at a place; gives the node it ends at now."""
    nodes, token = tree.nodes, int(base[place])
    child = find(tree, base, node, token)
    if child == NONE:
        if node != ROOT and nodes[node, COUNT] == 1:
            _lengthen(tree, node, place)
            return node
        return _add_child(tree, base, node, place)
    if node != ROOT and nodes[node, COUNT] == nodes[child, COUNT] + 1:
        return _slide(tree, base, node, child, place)
    if nodes[child, LENGTH] > 1:
        child = _split(tree, base, child)
    raise_count(tree, child)
    return child


@bare
def _lengthen(tree: Tree, node: int, place: int) -> None:
    """Let a node end with the token at a place; its run is read there from now on, since its old place may end or be removed."""
    tree.nodes[node, LENGTH] += 1
    tree.nodes[node, REF] = place - tree.nodes[node, LENGTH] + 1


@bare
def _add_child(tree: Tree, base: Int32, node: int, place: int) -> int:
    """A leaf of one token, last among its siblings."""
    nodes, child = tree.nodes, new_node(tree)
    nodes[child] = NONE
    nodes[child, PARENT], nodes[child, COUNT], nodes[child, LENGTH], nodes[child, REF] = node, 1, 1, place
    enter(tree, base, child)
    if node != ROOT:
        link_last(tree, child)
    return child


@bare
def _slide(tree: Tree, base: Int32, node: int, child: int, place: int) -> int:
    """The suffix is the only one that ends at the node and all others go to one child: move the border between the two a token on."""
    nodes = tree.nodes
    leave_table(tree, base, child)
    nodes[child, LENGTH] -= 1
    nodes[child, REF] += 1
    _lengthen(tree, node, place)
    if nodes[child, LENGTH] > 0:
        enter(tree, base, child)
        return node
    _take_place(tree, base, child, node)
    nodes[child, COUNT] += 1
    nodes[child, LENGTH] = nodes[node, LENGTH]
    nodes[child, REF] = nodes[node, REF]
    free_node(tree, node)
    return child


@bare
def _take_place(tree: Tree, base: Int32, child: int, node: int) -> None:
    """Put an only child, already out of the table, where its parent stands."""
    nodes = tree.nodes
    replace_in_table(tree, base, node, child)
    free_group(tree, nodes[child, GROUP])
    for field in (PARENT, NEXT, PREV, GROUP):
        nodes[child, field] = nodes[node, field]
    if nodes[node, PARENT] != ROOT:
        replace_among_siblings(tree, node, child)


@bare
def _split(tree: Tree, base: Int32, child: int) -> int:
    """Cut the first token of a node off into a node of its own, which takes its place."""
    nodes, upper = tree.nodes, new_node(tree)
    for field in range(FIELDS):
        nodes[upper, field] = nodes[child, field]
    nodes[upper, LENGTH] = 1
    nodes[upper, HEAD] = nodes[upper, TAIL] = child
    replace_in_table(tree, base, child, upper)
    if nodes[child, PARENT] != ROOT:
        replace_among_siblings(tree, child, upper)
    nodes[child, PARENT] = upper
    nodes[child, LENGTH] -= 1
    nodes[child, REF] += 1
    nodes[child, NEXT] = nodes[child, PREV] = NONE
    own_group(tree, child)
    enter(tree, base, child)
    return upper


@bare
def remove(tree: Tree, base: Int32, start: int, stop: int) -> None:
    """Forget the sequence at ``base[start:stop]``, all of which was appended."""
    nodes = tree.nodes
    for first in range(start, stop):
        node, place = ROOT, first
        nodes[ROOT, COUNT] -= 1
        while place < stop:
            child = find(tree, base, node, int(base[place]))
            if child == NONE:
                break
            if nodes[child, COUNT] == 1:
                _drop(tree, base, child)
                break
            lower_count(tree, child)
            node, place = child, place + nodes[child, LENGTH]
        only = int(nodes[node, HEAD])
        if node != ROOT and only != NONE and only == nodes[node, TAIL] and nodes[only, COUNT] == nodes[node, COUNT]:
            leave_table(tree, base, only)
            nodes[only, LENGTH] += nodes[node, LENGTH]
            nodes[only, REF] -= nodes[node, LENGTH]
            _take_place(tree, base, only, node)
            free_node(tree, node)


@bare
def _drop(tree: Tree, base: Int32, leaf: int) -> None:
    """Take out a node that a single suffix passes."""
    leave_table(tree, base, leaf)
    if tree.nodes[leaf, PARENT] != ROOT:
        unlink(tree, leaf)
    free_node(tree, leaf)


@bare
def match(tree: Tree, base: Int32, run: Int32) -> tuple[int, int]:
    """Where a run of tokens from the root ends: the node and the place in it; −1 where it never stood."""
    node, place = ROOT, 0
    for token in run:
        if node == ROOT or place == tree.nodes[node, LENGTH]:
            node, place = find(tree, base, node, int(token)), 0
            if node == NONE:
                return NONE, 0
        if base[tree.nodes[node, REF] + place] != token:
            return NONE, 0
        place += 1
    return node, place
