#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# By which interface a node calls others that was not told which: the one that the
# route to the target names. In a network of our own, with another host.
if [ "${1-}" != inside ]; then
	apart=(unshare --net)
	[ "$(id -u)" = 0 ] || apart+=(--map-root-user)
	"${apart[@]}" bash -c 'ip link add a0 type veth peer name b0 &&
		unshare --net true && command -v nsenter' >/dev/null 2>&1 &&
		exec "${apart[@]}" bash "$0" inside
	echo "may not make network namespaces with interfaces"
	exit 77
fi
. "${srcdir:-.}/tests/tools/lib.sh" || exit
ip link set lo up

# A bridge of containers that nobody uses, which comes first.
ip link add docker0 type bridge
ip link set docker0 up
ip addr add 172.17.0.1/16 dev docker0

# The other host, with an interface on each of two networks, and a third one behind
# the second.
start far unshare --net bash -c 'echo $$; exec sleep infinity' || exit
far=$ready
there=(nsenter --net="/proc/$far/ns/net")
for n in 1 2; do
	ip link add eth$n type veth peer name far$n
	ip link set far$n netns "$far"
	ip addr add 10.9.$n.1/24 dev eth$n
	ip link set eth$n up
	"${there[@]}" ip addr add 10.9.$n.2/24 dev far$n
	"${there[@]}" ip link set far$n up
done
"${there[@]}" ip link set lo up
"${there[@]}" ip addr add 10.9.3.2/32 dev lo
ip route add 10.9.3.0/24 via 10.9.2.2

start server "${there[@]}" "$rpcserve" --port 19880 \
	--net 'tcp(far1,far2)' --net 'tcp(10.9.3.2)' --accept all || finish

# calls TARGET INTERFACE ADDRESS: some, and those that are lost say the interface
calls() {
	run 0 "$rpcping" --port 19880 --count 3 --deadline 1m "$1"
	run 0 "$rpcping" --port 19880 --count 3 --deadline 1m --explain "$1"
	has out "$3@tcp"
	run 1 "$rpcping" --port 19881 --count 1 --deadline 0.5 "$1"
	has err "^rpcping: calls go out by $2, $3@tcp\$"
}

calls 10.9.1.2@tcp eth1 10.9.1.1
calls 10.9.2.2@tcp eth2 10.9.2.1
# Neither the first interface nor a network of this host.
calls 10.9.3.2@tcp eth2 10.9.2.1

# The console of the self-test, too, whatever address its session is named after. The
# node takes the word of this address only.
start tested "${there[@]}" "$lnetd" --foreground --port 19882 --socket "$dir/tested" \
	--net 'tcp(far2)' --net 'tcp(10.9.3.2)' --accept all --lst 10.9.2.1@tcp || finish
export LST_SESSION=$$ XDG_RUNTIME_DIR=$dir/run
mkdir "$XDG_RUNTIME_DIR"
run 0 "$lst" --port 19882 new_session x
run 0 "$lst" show_session
has out '^x: console '
run 0 "$lst" add_group far 10.9.2.2@tcp
run 0 "$lst" add_group behind 10.9.3.2@tcp
run 0 "$lst" add_test --from far --to behind --loop 10 ping
run 0 "$lst" run --wait batch
run 1 "$lst" add_group none 192.0.2.1@tcp
has err '192.0.2.1@tcp: no answer: Network is unreachable$'
run 1 "$lst" end_session
has err 'end_session: 192.0.2.1@tcp: no answer'

# Several targets: each by its own.
run 0 "$rpcping" --port 19880 --count 3 --deadline 1m 10.9.1.2@tcp 10.9.2.2@tcp

# No way there: said at once.
run 1 "$rpcping" --port 19880 --count 1 --deadline 1h 192.0.2.1@tcp
has err '^rpcping: 192.0.2.1@tcp: this host has no way there: Network is unreachable; see --net'
silent out

kill -KILL "${pids[far]}"
wait "${pids[far]}" 2>/dev/null
unset 'pids[far]'
finish
