#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_tcp.sh [BUILD]
# LNet over TCP between processes of this host: the second part of ./demo. BUILD
# is where tools/ and examples/ were built; the current directory if not given.
# Nothing is left behind, and anything unexpected ends it with a reason.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit
# Of the depots, by name: pipes, seed of what it keeps.
declare -A in=() out=() seeds=()

# ---- depots: their stdin and stdout are pipes to us ----

start_depot() { # NAME
	local name=$1

	echo "  \$ depot --port $port --socket $name.sock &"
	mkfifo "$name.in" "$name.out" || die "cannot make a pipe"
	depot --port "$port" --socket "$name.sock" <"$name.in" >"$name.out" &
	pids[$name]=$!
	exec {in[$name]}>"$name.in" {out[$name]}<"$name.out"
	hear "$name" "^depot: ready on port $port, socket $name.sock\$"
}

# hear NAME PATTERN: what it says next, which is left in $heard.
hear() {
	heard=
	read -r -t 30 -u "${out[$1]}" heard || die "$1 says no more"
	echo "  $1: $heard"
	[[ $heard =~ $2 ]] || die "expected: $2"
}

# order NAME put|get PEER: 1 MiB goes from one to the other. Who receives it
# says that it is right, and must name the seed that the sender has named.
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

say "They ping each other."
run 0 9 lnetctl --socket alice.sock ping --timeout 60 "${nids[bob]}"
has "^- primary nid: ${nids[bob]}\$"
run 0 9 lnetctl --socket bob.sock ping --timeout 60 "${nids[alice]}"
has "^- primary nid: ${nids[alice]}\$"

say "1 MiB each way, by PUT and by GET. The contents follow from a seed, new
each time; who receives them looks at every byte."
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
# It is no child of ours, so there is nothing to wait for.
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
