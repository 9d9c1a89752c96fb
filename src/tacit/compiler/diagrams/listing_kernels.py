"""From numbers, each the sum or product of two others, to a short list of instructions."""

# What is built into kernels: see `jit`.

from __future__ import annotations

import numpy as np

from tacit.base.jit import jit
from tacit.compiler.diagrams.diagram_kernels import PRODUCT, SUM


@jit()
def listing(kind, left, right, static, roots, rows):  # type: ignore[no-untyped-def]
    """The instructions that compute the numbers in `roots`, which are not leaves.

    Leaves are the numbers for which `static` holds and all that are neither sum nor product. A sum takes in the sums
    and products that only it uses. With `rows`, products with a static number are linear terms; an instruction then
    has terms of one kind only: the products are added up first, as a number beyond all others. Returns the number that
    each instruction makes, the end of its terms, whether it is linear, and the terms, as pairs of numbers; number 1
    is 1.
    """
    count = len(kind)
    uses = np.zeros(count, dtype=np.int32)
    top = 0
    for i in range(len(roots)):
        uses[roots[i]] += 2  # never taken in
        top = max(top, roots[i])
    terms = 0
    for i in range(top, -1, -1):
        if uses[i] and not static[i] and (kind[i] == SUM or kind[i] == PRODUCT):
            terms += 2
            for child in (left[i], right[i]):
                uses[child] += 1
    made = np.empty(terms, dtype=np.int64)
    ends = np.empty(terms, dtype=np.int64)
    linear = np.empty(terms, dtype=np.bool_)
    pairs = np.empty((2 * terms, 2), dtype=np.int64)
    plain = np.empty((2 * terms, 2), dtype=np.int64)
    stack = np.empty(terms + 2, dtype=np.int64)
    # a product with a static number is a term of every sum that uses it
    wanted = np.zeros(count, dtype=np.bool_)
    for i in range(len(roots)):
        wanted[roots[i]] = True
    for i in range(top, -1, -1):
        if wanted[i] and not static[i] and (kind[i] == SUM or kind[i] == PRODUCT):
            depth = 1
            stack[0] = i
            while depth:
                depth -= 1
                at = stack[depth]
                for child in (left[at], right[at]):
                    inner = not static[child] and (kind[child] == SUM or kind[child] == PRODUCT)
                    if not inner:
                        continue
                    if kind[at] == SUM and uses[child] == 1:
                        stack[depth] = child
                        depth += 1
                    elif (
                        kind[at] == SUM
                        and rows
                        and kind[child] == PRODUCT
                        and (static[left[child]] or static[right[child]])
                    ):
                        wanted[right[child] if static[left[child]] else left[child]] = True
                    else:
                        wanted[child] = True
    instructions = used = 0
    parts = count
    for i in range(top + 1):
        if not wanted[i] or static[i] or not (kind[i] == SUM or kind[i] == PRODUCT):
            continue
        start, linears = used, 0
        depth = 1
        stack[0] = i
        while depth:
            depth -= 1
            at = stack[depth]
            if at < 0:  # an end
                at = -1 - at
                if rows and not static[at]:
                    plain[linears, 0], plain[linears, 1] = 1, at
                elif rows:
                    plain[linears, 0], plain[linears, 1] = at, 1
                else:
                    pairs[used, 0], pairs[used, 1] = 1, at
                    used += 1
                    continue
                linears += 1
            elif kind[at] == PRODUCT:
                a, b = left[at], right[at]
                if rows and (static[a] or static[b]):
                    if static[b]:
                        a, b = b, a
                    plain[linears, 0], plain[linears, 1] = a, b
                    linears += 1
                else:
                    pairs[used, 0], pairs[used, 1] = a, b
                    used += 1
            else:
                for child in (right[at], left[at]):
                    inner = not static[child] and (kind[child] == SUM or kind[child] == PRODUCT)
                    scaled = inner and rows and kind[child] == PRODUCT and (static[left[child]] or static[right[child]])
                    if inner and (uses[child] == 1 or scaled):
                        stack[depth] = child
                    else:
                        stack[depth] = -1 - child
                    depth += 1
        if linears and used > start:
            made[instructions], ends[instructions], linear[instructions] = parts, used, False
            plain[linears, 0], plain[linears, 1] = 1, parts
            linears += 1
            parts += 1
            instructions += 1
        for t in range(linears):
            pairs[used, 0], pairs[used, 1] = plain[t, 0], plain[t, 1]
            used += 1
        made[instructions], ends[instructions], linear[instructions] = i, used, linears > 0
        instructions += 1
    return made[:instructions], ends[:instructions], linear[:instructions], pairs[:used], parts - count


@jit()
def reached(kind, left, right, from_):  # type: ignore[no-untyped-def]
    """Which numbers depend on some symbols."""
    found = from_.copy()
    for i in range(len(kind)):
        if kind[i] == SUM or kind[i] == PRODUCT:
            found[i] = found[left[i]] or found[right[i]]
    return found
