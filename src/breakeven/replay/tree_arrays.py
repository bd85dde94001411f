"""The arrays of a suffix tree: nodes, the table of children, what is free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import bare, compiled

Int32 = NDArray[np.int32]
PARENT, COUNT, LENGTH, REF, HEAD, TAIL, NEXT, PREV, GROUP, FIELDS = range(10)
USED, FREE, GROUPS, FREE_GROUP, MASK, STATES = range(6)
ROOT, NONE = 0, -1


class Tree(NamedTuple):
    """Arrays of a tree; the tokens themselves stay in the log, ``REF`` is a place in it."""

    nodes: Int32
    """Shape (nodes, FIELDS); node 0 is the root."""
    heads: Int32
    """The first member of each group of equal siblings."""
    table: Int32
    """Children by (parent, first token): node ids, open addressing."""
    state: NDArray[np.int64]


@bare
def room(tokens: int, sequences: int, depth: int) -> int:
    """The most nodes of a compressed tree: a leaf and a fork a suffix, and the ends of sequences."""
    return 2 * tokens + depth * (sequences + 1) + 8


@bare
def table_size(nodes: int) -> int:
    """Slots of a table for so many nodes: a power of two, at most half full."""
    slots = 16
    while slots < 2 * nodes:
        slots *= 2
    return slots


@bare
def reset(tree: Tree, nodes: int) -> None:
    """Empty a tree, for a use that needs at most so many nodes."""
    slots = table_size(nodes)
    tree.table[:slots] = NONE
    tree.state[:] = (1, NONE, 0, NONE, slots - 1)
    tree.nodes[ROOT] = NONE
    tree.nodes[ROOT, COUNT] = 0
    tree.nodes[ROOT, LENGTH] = 0


@compiled
def new_tree(nodes: int) -> Tree:
    """An empty tree with room for so many nodes."""
    tree = Tree(
        np.empty((nodes, FIELDS), np.int32),
        np.empty(nodes, np.int32),
        np.empty(table_size(nodes), np.int32),
        np.empty(STATES, np.int64),
    )
    reset(tree, nodes)
    return tree


@bare
def find(tree: Tree, base: Int32, parent: int, token: int) -> int:
    """The child of a node that begins with a token, or −1."""
    return int(tree.table[slot_of(tree, base, parent, token)])


@bare
def _home(parent: int, token: int, mask: int) -> int:
    mixed = ((parent * 0x2545F491 + token) & 0x7FFFFFFF) * 0x2C1B3C6D
    return (mixed ^ (mixed >> 17)) & mask


@bare
def slot_of(tree: Tree, base: Int32, parent: int, token: int) -> int:
    """The slot of a child, or the free one where it would be entered."""
    nodes, table, mask = tree.nodes, tree.table, tree.state[MASK]
    slot = _home(parent, token, mask)
    while table[slot] != NONE and (nodes[table[slot], PARENT] != parent or base[nodes[table[slot], REF]] != token):
        slot = (slot + 1) & mask
    return slot


@bare
def enter(tree: Tree, base: Int32, node: int) -> None:
    """Enter a node under its parent and first token."""
    tree.table[slot_of(tree, base, int(tree.nodes[node, PARENT]), int(base[tree.nodes[node, REF]]))] = node


@bare
def replace_in_table(tree: Tree, base: Int32, old: int, new: int) -> None:
    """Give a node's slot to another of the same parent and first token."""
    tree.table[slot_of(tree, base, int(tree.nodes[old, PARENT]), int(base[tree.nodes[old, REF]]))] = new


@bare
def leave_table(tree: Tree, base: Int32, node: int) -> None:
    """Free a node's slot and close the gap that probing would stop at."""
    nodes, table, mask = tree.nodes, tree.table, tree.state[MASK]
    free = slot_of(tree, base, int(nodes[node, PARENT]), int(base[nodes[node, REF]]))
    slot = (free + 1) & mask
    while table[slot] != NONE:
        home = _home(int(nodes[table[slot], PARENT]), int(base[nodes[table[slot], REF]]), mask)
        if (slot - home) & mask >= (slot - free) & mask:
            table[free] = table[slot]
            free = slot
        slot = (slot + 1) & mask
    table[free] = NONE


@bare
def new_node(tree: Tree) -> int:
    """A node that is not in use."""
    state = tree.state
    node = int(state[FREE])
    if node == NONE:
        node = int(state[USED])
        state[USED] += 1
    else:
        state[FREE] = tree.nodes[node, PARENT]
    return node


@bare
def free_node(tree: Tree, node: int) -> None:
    """Give a node back."""
    tree.nodes[node, PARENT] = tree.state[FREE]
    tree.state[FREE] = node


@bare
def own_group(tree: Tree, node: int) -> None:
    """A new group of a node alone."""
    state = tree.state
    group = state[FREE_GROUP]
    if group == NONE:
        group = state[GROUPS]
        state[GROUPS] += 1
    else:
        state[FREE_GROUP] = tree.heads[group]
    tree.nodes[node, GROUP] = group
    tree.heads[group] = node


@bare
def free_group(tree: Tree, group: int) -> None:
    """Give a group back; children of the root have none."""
    if group != NONE:
        tree.heads[group] = tree.state[FREE_GROUP]
        tree.state[FREE_GROUP] = group
