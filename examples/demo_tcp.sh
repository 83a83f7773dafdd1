#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_tcp.sh [BUILD]
# The second part of ./demo: LNet over TCP between processes of this host. BUILD is
# where tools/ and examples/ were built; the current directory if not given. Leaves
# nothing behind. If anything unexpected happens, it ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit
# By name of a depot: pipes to and from it, and the seed of the document it keeps.
declare -A in=() out=() seeds=()

# ---- depots: this script has pipes to their stdin and from their stdout ----

start_depot() { # NAME
	local name=$1

	echo "  \$ depot --port $port --socket $name.sock &"
	mkfifo "$name.in" "$name.out" || die "cannot make a pipe"
	depot --port "$port" --socket "$name.sock" <"$name.in" >"$name.out" &
	pids[$name]=$!
	exec {in[$name]}>"$name.in" {out[$name]}<"$name.out"
	hear "$name" "^depot: ready on port $port, socket $name.sock\$"
}

# hear NAME PATTERN: sets $heard to the next line of the depot NAME, and prints it.
# Fails unless it matches.
hear() {
	heard=
	read -r -t 30 -u "${out[$1]}" heard || die "$1 says no more"
	echo "  $1: $heard"
	[[ $heard =~ $2 ]] || die "expected: $2"
}

# order NAME put|get PEER: tells the depot NAME to move 1 MiB to or from PEER. The
# receiver must say that the content is right, and name the seed that the sender has.
order() {
	local name=$1 what=$2 peer=$3 own=${nids[$1]} nid=${nids[$3]} seed
	local size=1048576 hex='([0-9a-f]{16})'

	echo "  $name< $what $nid"
	echo "$what $nid" >&"${in[$name]}" || die "$name does not listen"
	if [ "$what" = put ]; then
		hear "$name" "^put $nid: $size bytes, seed $hex: delivered\$"
		seed=${BASH_REMATCH[1]}
		hear "$peer" "^$own put $size bytes, seed $seed: verified\$"
		seeds[$peer]=$seed
	else
		seed=${seeds[$peer]}
		hear "$name" "^get $nid: $size bytes, seed $seed: verified\$"
		hear "$peer" "^$own got $size bytes: ok\$"
	fi
}

declare -A nids=([alice]=127.0.0.1@tcp [bob]=127.0.0.2@tcp
	[carol]=127.0.0.3@tcp)
free_port

say "Two processes are nodes: examples/depot.c, built on libulnet. They have no
nets yet, but sockets at which lnetctl reaches them."
start_depot alice
start_depot bob
run 0 9 lnetctl --socket alice.sock net show

say "Each gets a net. The first try has a slip of the pen in it."
run 254 9 lnetctl --socket alice.sock net add --net tpc --if 127.0.0.1
has "cannot parse net 'tpc'"
run 0 9 lnetctl --socket alice.sock net add --net tcp --if 127.0.0.1
run 0 9 lnetctl --socket bob.sock net add --net tcp --if 127.0.0.2
[ -n "$(sockets LISTEN)" ] || die "nobody listens on port $port"

say "Alice and Bob ping each other."
run 0 9 lnetctl --socket alice.sock ping --timeout 60 "${nids[bob]}"
has "^- primary nid: ${nids[bob]}\$"
run 0 9 lnetctl --socket bob.sock ping --timeout 60 "${nids[alice]}"
has "^- primary nid: ${nids[alice]}\$"

say "1 MiB each way, by PUT and by GET. The contents follow from a seed, which is new
each time; the receiver verifies every byte."
order alice put bob
order bob put alice
order alice get bob
order bob get alice

say "What has been counted."
run 0 16 lnetctl --socket alice.sock net show --net tcp -v
has "^ +send_count: [1-9]"
run 0 9 lnetctl --socket alice.sock peer show
has "nid: ${nids[bob]}\$"
run 0 9 lnetctl --socket alice.sock stats show
has "^ +send_length: [1-9][0-9]{6}\$"

say "lnetd is a node that needs no program."
run 0 9 lnetd --net "tcp(127.0.0.3)" --port "$port" --socket carol.sock \
	--pidfile carol.pid
daemon=$(cat carol.pid) || die "lnetd has left no process id"
run 0 9 lnetctl --socket bob.sock ping --timeout 60 "${nids[carol]}"
has "^- primary nid: ${nids[carol]}\$"
run 0 9 kill -TERM "$daemon"
# lnetd is no child of this shell, which therefore cannot "wait" for it.
for ((tries = 0; tries < 300; tries++)); do
	gone "$daemon" && break
	sleep 0.1
done
gone "$daemon" || die "lnetd, process $daemon, does not end"

say "The others end, too."
ended=("$daemon")
for name in alice bob; do
	echo "  $name< quit"
	echo quit >&"${in[$name]}" || die "$name does not listen"
	wait "${pids[$name]}" || die "$name: exit status $?"
	ended+=("${pids[$name]}")
	unset "pids[$name]"
done
nothing_left "${ended[@]}"
say "Nothing is left: no process, no socket file, nobody listens on port $port."
