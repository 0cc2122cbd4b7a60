"""Sum-product LBP by PGMax 0.6.1: pairwise factor groups, jit of a vmap over rows."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from pgmax import fgraph, fgroup, infer, vgroup

from problem import F32, Problem, split_group

if not hasattr(jax.lib, "xla_bridge"):
    # PGMax 0.6.1 asks it for the platform; newer jax has it elsewhere.
    from jax.extend import backend

    jax.lib.xla_bridge = backend

Rows = Callable[[F32], F32]
SPINS = np.array([-1.0, 1.0], dtype=np.float32)


def build(problem: Problem) -> Rows:
    """log-odds [rows, n] → P(+1) [rows, n]."""
    run = on_device(problem)
    return lambda logits: np.asarray(run(logits))


def on_device(problem: Problem) -> Callable[[jax.Array], jax.Array]:
    """The same, of arrays that stay where they are."""
    part = split_group(problem)  # without a group: every label is binary
    labels = vgroup.NDVarArray(num_states=2, shape=(len(part.binary),))
    node = vgroup.NDVarArray(num_states=len(problem.group), shape=(1,)) if part.unary.size else None
    graph = fgraph.FactorGraph([labels] if node is None else [labels, node])
    if len(part.edges):
        graph.add_factors(
            fgroup.PairwiseFactorGroup(
                variables_for_factors=[[labels[a], labels[b]] for a, b in part.edges.tolist()],
                log_potential_matrix=-part.j[:, None, None] * np.outer(SPINS, SPINS),
            )
        )
    if node is not None and len(part.table_of):
        graph.add_factors(
            fgroup.PairwiseFactorGroup(
                variables_for_factors=[[node[0], labels[b]] for b in part.table_of.tolist()],
                log_potential_matrix=part.field[:, :, None] * SPINS,
            )
        )
    inferer = infer.build_inferer(graph.bp_state, backend="bp")

    def one_row(logits: jax.Array) -> jax.Array:
        half = 0.5 * logits[part.binary]
        evidence = {labels: jnp.stack([-half, half], 1)}
        if node is not None:
            evidence[node] = (logits[problem.group] + part.unary)[None]
        arrays = inferer.init(evidence_updates=evidence)
        arrays = inferer.run(
            arrays, num_iters=problem.iterations, damping=problem.damping, temperature=1.0
        )
        marginals = infer.get_marginals(inferer.get_beliefs(arrays))
        result = jnp.zeros(problem.n).at[part.binary].set(marginals[labels][:, 1])
        return result if node is None else result.at[problem.group].set(marginals[node][0])

    return jax.jit(jax.vmap(one_row))
