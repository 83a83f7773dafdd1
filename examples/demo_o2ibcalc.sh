#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_o2ibcalc.sh [BUILD]
# What two o2ib nodes with different tunables agree upon: a part of ./demo.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

nodes=(--a model=2.16,peer_credits=32 --b model=2.12)

# part FROM TO: prints the output from a line that matches FROM to one that matches
# TO.
part() {
	sed -n "/$1/,/$2/p" output | sed 's/^/  /'
}

say "Two nodes of o2ib nets do not agree: A wants deeper queues than B takes."
run 0 0 o2ibcalc "${nodes[@]}"
part '^A asks' '^Connected'
has 'rejected, depth 8 at most$'

say "Why? Each value has the rule that made it."
run 0 0 o2ibcalc "${nodes[@]}" --explain
part 'queue_depth = 8, not 32' 'connect.frags'
part 'hiw = 4 ' 'hiw.below'

say "What if B's queues were deeper?"
run 0 0 o2ibcalc "${nodes[@]}" --what-if b.peer_credits=16,32
part '^What if' '^  max_send_wr'

say "Two other nodes can never be connected."
run 1 0 o2ibcalc --a model=2.10.54,kernel=3.10.0-514,map_on_demand=0 \
	--b model=2.10.54,kernel=3.10.0-693,map_on_demand=32
part '^A asks' '^No connection'
has '^No connection'
