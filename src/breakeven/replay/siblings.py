"""Children by falling count, and the order of those that have the same.

One that overtakes its equals goes behind those that have the next count already, one that catches up alone goes before them, as in
SuffixDecoding: which of two equals is drafted depends on it. Children of the root are not ordered: no draft starts there.
"""

from __future__ import annotations

from breakeven.compiled import bare
from breakeven.replay.tree_arrays import COUNT, GROUP, HEAD, NEXT, NONE, PARENT, PREV, ROOT, TAIL, Tree, free_group, own_group


@bare
def replace_among_siblings(tree: Tree, old: int, new: int) -> None:
    """Let a node that knows its siblings and its group already stand where another stood."""
    nodes = tree.nodes
    before, after, parent = int(nodes[old, PREV]), int(nodes[old, NEXT]), int(nodes[old, PARENT])
    if before == NONE:
        nodes[parent, HEAD] = new
    else:
        nodes[before, NEXT] = new
    if after == NONE:
        nodes[parent, TAIL] = new
    else:
        nodes[after, PREV] = new
    if tree.heads[nodes[old, GROUP]] == old:
        tree.heads[nodes[old, GROUP]] = new


@bare
def raise_count(tree: Tree, node: int) -> None:
    """One more suffix passes a node: it moves before its equals."""
    nodes, heads = tree.nodes, tree.heads
    count = nodes[node, COUNT] + 1
    before, after, group = nodes[node, PREV], nodes[node, NEXT], nodes[node, GROUP]
    if nodes[node, PARENT] == ROOT:
        nodes[node, COUNT] = count
    elif before == NONE or nodes[before, COUNT] > count:
        nodes[node, COUNT] = count
        if after != NONE and nodes[after, GROUP] == group:
            heads[group] = after
            own_group(tree, node)
    else:
        other = int(heads[nodes[before, GROUP]])
        unlink(tree, node)
        nodes[node, COUNT] = count
        link_before(tree, node, other)


@bare
def lower_count(tree: Tree, node: int) -> None:
    """One suffix fewer passes a node: it moves behind its equals, before those that have its new count already."""
    nodes = tree.nodes
    group, other = nodes[node, GROUP], int(nodes[node, NEXT])
    nodes[node, COUNT] -= 1
    if nodes[node, PARENT] == ROOT:
        return
    while other != NONE and nodes[other, GROUP] == group:
        other = int(nodes[other, NEXT])
    unlink(tree, node)
    if other == NONE:
        link_last(tree, node)
    else:
        link_before(tree, node, other)


@bare
def unlink(tree: Tree, node: int) -> None:
    """Take a node out of its siblings and its group."""
    nodes, heads = tree.nodes, tree.heads
    before, after, group, parent = nodes[node, PREV], nodes[node, NEXT], nodes[node, GROUP], nodes[node, PARENT]
    if heads[group] == node:
        if after != NONE and nodes[after, GROUP] == group:
            heads[group] = after
        else:
            free_group(tree, group)
    if before == NONE:
        nodes[parent, HEAD] = after
    else:
        nodes[before, NEXT] = after
    if after == NONE:
        nodes[parent, TAIL] = before
    else:
        nodes[after, PREV] = before


@bare
def link_last(tree: Tree, node: int) -> None:
    """Put a node behind its siblings, and into the group of the last where that has its count."""
    nodes = tree.nodes
    parent = nodes[node, PARENT]
    last = nodes[parent, TAIL]
    nodes[node, PREV], nodes[node, NEXT], nodes[parent, TAIL] = last, NONE, node
    if last == NONE:
        nodes[parent, HEAD] = node
    else:
        nodes[last, NEXT] = node
    if last != NONE and nodes[last, COUNT] == nodes[node, COUNT]:
        nodes[node, GROUP] = nodes[last, GROUP]
    else:
        own_group(tree, node)


@bare
def link_before(tree: Tree, node: int, other: int) -> None:
    """Put a node before a sibling, and into the group of those that have its count."""
    nodes = tree.nodes
    before, count = nodes[other, PREV], nodes[node, COUNT]
    if before == NONE:
        nodes[nodes[node, PARENT], HEAD] = node
    else:
        nodes[before, NEXT] = node
    nodes[node, PREV], nodes[node, NEXT], nodes[other, PREV] = before, other, node
    if before != NONE and nodes[before, COUNT] == count:
        nodes[node, GROUP] = nodes[before, GROUP]
    elif nodes[other, COUNT] == count:
        nodes[node, GROUP] = nodes[other, GROUP]
        tree.heads[nodes[node, GROUP]] = node
    else:
        own_group(tree, node)
