#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls over RDMA, between two processes on two Soft-RoCE devices, as vm-run --rdma rxe
# makes them:
#
#	rxea on va, 10.77.9.1 -------- sa, switch, sb -------- rxeb on vb, 10.77.9.2
#	     server                                                 client
#
# Small ones and verified bulk both ways; frames that are lost; a net that is cut
# under load, and mended; and a second rail over TCP, with which calls go on meanwhile,
# also while a link is down, or a device is gone. Then LNet's conformance suite, and an
# interface that gets another name. Few machines that tests run on have such a kernel;
# ./check --long has a virtual machine with one that does.
#
# o2ib_rpc.sh [--short]: the calls and the name only.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

has_devices() {
	rdma link show rxea/1 && rdma link show rxeb/1
} >/dev/null 2>&1

has_devices || skip "no Soft-RoCE devices rxea and rxeb"
[ "$(id -u)" = 0 ] || skip "takes root: ports below 1024, links and devices that go"

server=10.77.9.1@o2ib
ping=("$rpcping" --net 'o2ib(10.77.9.2)' --deadline 120 --grace 120)

# pings ARGUMENT...: all calls are answered.
pings() {
	run 0 "${ping[@]}" "$@" "$server"
	has out 'lost 0, resent'
}

# calls COUNT BULK
calls() {
	pings --count "$1" --verify
	pings --count "$1" --inflight 32 --size 1000 --verify
	pings --count $(($1 / 10)) --inflight 4 --bulk-write "$2" --verify
	pings --count $(($1 / 10)) --inflight 4 --bulk-read "$2" --verify
	pings --count $(($1 / 10)) --bulk-read 5000 --verify
}

# The client's live line has calls again, from now on.
goes_on() {
	await "$dir/live" ' [1-9][0-9]* calls/s' $(($(wc -l <"$dir/live") + 2))
}

# Nothing passes between the devices, or all does.
cut() {
	tc qdisc add dev va root netem loss 100%
	tc qdisc add dev vb root netem loss 100%
}
mend() {
	tc qdisc del dev va root
	tc qdisc del dev vb root
}

# The device of an end, a or b, goes under its users, or is there again.
unplug() {
	expect "rxe$1 does not go" timeout 60 rdma link delete "rxe$1"
}
plug() {
	expect "no rxe$1" rdma link add "rxe$1" type rxe netdev "v$1"
}

# Where rdma_alone() puts its rules. The hook stays: the kernel rewrites its own code for
# the first and for the last one, and an emulated machine whose other processor runs that
# code meanwhile may run into it for ever.
hook() {
	nft add table ip rail
	nft 'add chain ip rail in { type filter hook input priority 0; }'
}

# Calls go on without TCP.
rdma_alone() {
	nft add rule ip rail in tcp dport 988 drop
	nft add rule ip rail in tcp sport 988 drop
	goes_on
	nft flush chain ip rail in
	goes_on
}

# No event of the device tells of the new name. What is exported says it, and can be
# imported.
rename() {
	need_lnetd named --net 'o2ib(va)'
	ctl 0 net show --net o2ib
	has out ' 0: va$'
	ip link set va down
	ip link set va name ens5
	ip link set ens5 up
	ctl_until ' 0: ens5$' net show --net o2ib
	ctl_until 'status: up' net show --net o2ib
	ctl 0 export --backup "$dir/backup"
	run 1 grep -q ' va$' "$dir/backup"
	stop_lnetd named
	need_lnetd again --config "$dir/backup"
	ctl 0 net show --net o2ib
	has out ' 0: ens5$'
	has out ' nid: 10.77.9.1@o2ib$'
	stop_lnetd again
}

need_rpcserve server --net 'o2ib(10.77.9.1)'
calls 200 1M
run 1 "${ping[@]}" --count 1 10.77.9.99@o2ib
has err 'unreachable'
has err 'is there a node.*o2iblnd\(7\)'
if [ "${1:-}" = --short ]; then
	stop_lnetd server
	rename
	finish
fi

# ---- losses ----

# The device begins anew from what is lost, and waits long for what was the last
# one: the fewer frames, the better.
for dev in va vb; do
	tc qdisc add dev $dev root netem loss 0.2% || skip "no netem"
done
calls 100 64k
for dev in va vb; do
	tc qdisc del dev $dev root
done

# ---- a net that is cut, and mended ----

client=("${ping[@]:1}")
ping=("$rpcping")
start_ping --time 1h --inflight 4 --bulk-write 100k --verify "$server"
cut
await "$dir/live" ' 0 calls/s'
mend
goes_on
kill -INT "${pids[ping]}"
end_ping 0
has out 'lost 0, resent'
stop_lnetd server

# ---- two rails ----

hook
need_rpcserve both --net 'o2ib(10.77.9.1),tcp(127.0.0.1)'
client=(--net 'o2ib(10.77.9.2),tcp(127.0.0.2)' --deadline 60 --grace 60)
rails() { # ARGUMENT...
	start_ping --time 1h --verify "$@" "$server,127.0.0.1@tcp"
}
none_lost() {
	kill -INT "${pids[ping]}"
	end_ping 0
	has out 'lost 0, resent'
}

rails --inflight 16 --size 1000
for _ in 1 2; do
	cut
	goes_on
	mend
	goes_on
	rdma_alone
done
none_lost
for bulk in --bulk-write --bulk-read; do
	rails --inflight 4 $bulk 100k
	# A device that goes, and comes back: the server's, and the client's.
	for end in a b; do
		unplug $end
		goes_on
		plug $end
		rdma_alone
	done
	# A cable that is pulled.
	for end in a b; do
		ip link set s$end down
		goes_on
		ip link set s$end up
		rdma_alone
	done
	none_lost
done
# An interface that is taken down: its routes go, and Soft-RoCE's own queue pair, which
# the CM uses, receives nothing any more once it has no route to send by (Linux 6.1 and
# 6.12). So a new device follows.
rails --inflight 16 --size 1000
ip link set va down
goes_on
ip link set va up
ip route add 10.77.9.2 dev va src 10.77.9.1 table 9001
unplug a
plug a
rdma_alone
none_lost
stop_lnetd both

# ---- the suite ----

run 0 timeout 900 tests/lnd/o2iblnd_test 'on devices'
has out '[1-9][0-9]* passed, 0 failed'

# ---- another name ----

rename
finish
