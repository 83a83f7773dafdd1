#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench/cores.sh [BUDGET]
# A model of a server with many CPTs, each on a core of its own: how many times the calls
# of one CPT it can serve, by the instructions that bench/budget.sh has counted (BUDGET, by
# default bench/budget.txt). Prints the table of ARCHITECTURE.md, "How far CPTs go".
#
# A call's part at its server, by the rows of the budget:
#	serve	rpc/server, and half of what both sides of RPC use
#	carry	half of LNet and of the LND over RDMA: of one message there and one
#		back each side sends one and receives one
# With several CPTs both take as much more as "cpts-DEPTH 2" is more than "cpts-DEPTH 1".
# For a client that another CPT serves, messages are handed over, which takes what
# "2-away" is more than "2": half of it on each of the two CPTs.
#
# Calls that can be served, in units of instructions a second of one core:
#	many hosts	their clients are served where their messages come
#	one host	one CPT carries its messages, and serves what it has time for;
#			all others only serve
#	workers		as many hosts, for one service whose handlers run on workers:
#			each request is put into its queue, and taken out, under the
#			lock of the queue
set -euo pipefail
budget=${1:-$(dirname "$0")/budget.txt}
# Instructions of exec_add(), counted by callgrind in tests/sim/rpc_campaign --seeds 3;
# to take a request out is taken to cost the same.
put=660

awk -v put=$put '
	function row(name, depth) {
		if (!((depth, name) in count)) {
			print "no row in the budget: " depth " " name >"/dev/stderr"
			exit 1
		}
		return count[depth, name]
	}
	# Adds up the rows of @depth whose names match @like.
	function rows(depth, like,   key, part, sum) {
		for (key in count) {
			split(key, part, SUBSEP)
			if (part[1] == depth && part[2] ~ like)
				sum += count[key]
		}
		return sum
	}
	# Of one host, with @n CPTs. The one that carries the messages serves a share
	# @own of the clients, so that it has as much to do as the others, if it can.
	function one_host(n, serve, carry, hand,   own, here, there) {
		own = (serve + hand / 2 - (n - 1) * carry - (n - 1) * hand / 2) / \
			(n * serve - (n - 2) * hand / 2)
		if (n == 1)
			return 1 / (serve + carry)
		if (own < 0)
			own = 0
		here = carry + own * serve + (1 - own) * hand / 2
		there = (1 - own) * (serve + hand / 2) / (n - 1)
		return 1 / (here > there ? here : there)
	}
	function model(depth,   more, serve, carry, hand, one, i, n, line) {
		more = row("2", "cpts-" depth) / row("1", "cpts-" depth)
		serve = rows(depth, "^rpc/server/") + \
			rows(depth, "^(rpc|rpc/wire|rpc/stats|base|include/ulnet)$") / 2
		carry = rows(depth, "^(lnet/.*|lnd/o2iblnd)$") / 2
		hand = row("2-away", "cpts-" depth) - row("2", "cpts-" depth)
		one = 1 / (serve + carry)
		serve *= more
		carry *= more
		for (i = 1; i <= ncpts; i++) {
			n = cpts[i]
			many[i] = n == 1 ? 1 : n / (serve + carry) / one
			host[i] = n == 1 ? 1 : one_host(n, serve, carry, hand) / one
			queue[i] = n * (1 / one + put) / (serve + carry + put)
			if (n == 1)
				queue[i] = 1
			if (queue[i] > (1 / one + put) / (2 * put))
				queue[i] = (1 / one + put) / (2 * put)
		}
		line = "| many hosts, " depth " under way |"
		for (i = 1; i <= ncpts; i++)
			line = line sprintf(" %.1f |", many[i])
		print line
		line = "| one host, " depth " under way |"
		for (i = 1; i <= ncpts; i++)
			line = line sprintf(" %.1f |", host[i])
		print line
		line = "| workers, " depth " under way |"
		for (i = 1; i <= ncpts; i++)
			line = line sprintf(" %.1f |", queue[i])
		print line
	}
	BEGIN { ncpts = split("1 2 4 8 16 32 64", cpts) }
	!/^#/ { count[$1, $2] = $3 }
	END {
		line = "| CPTs |"
		rule = "| --- |"
		for (i = 1; i <= ncpts; i++) {
			line = line " " cpts[i] " |"
			rule = rule " --- |"
		}
		print line
		print rule
		model(64)
		model(1)
	}' "$budget"
