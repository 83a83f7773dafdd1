#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Interfaces that come later than lnetd, and that get another name. In a network
# namespace of our own.
if [ "${1-}" != inside ]; then
	apart=(unshare --net)
	[ "$(id -u)" = 0 ] || apart+=(--map-root-user)
	"${apart[@]}" ip link add late0 type veth peer name far0 2>/dev/null &&
		exec "${apart[@]}" bash "$0" inside
	echo "may not make a network namespace with interfaces"
	exit 77
fi
. "${srcdir:-.}/tests/tools/lib.sh" || exit
ip link set lo up

# A link without a carrier, as a bridge of containers is, which comes before all
# others: nobody is reached by it, so it is the default only if it is alone.
ip link add empty0 type veth peer name empty1
ip link set empty0 up
ip addr add 172.17.0.1/16 dev empty0
# Linux says that a bridge without ports has a carrier, until it has had a port.
ip link add empty2 type bridge
ip link set empty2 up
ip addr add 172.18.0.1/16 dev empty2
need_lnetd alone --port 19880 --net tcp
echo "$ready" >"$dir/out"
ran="a net without interfaces"
has out '^lnetd: ready: 172.17.0.1@tcp, port'
stop_lnetd alone

# late ARGUMENT...: lnetd in the background, which waits for something.
late() {
	# What an earlier one has said must not be taken for this one's.
	: >"$dir/ready"
	: >"$dir/late.err"
	"$lnetd" --foreground --wait 60 --port 19880 "$@" >"$dir/ready" \
		2>"$dir/late.err" </dev/null &
	pids[late]=$!
	ran="lnetd $*"
	await "$dir/late.err" '^lnetd: waiting for interfaces and addresses, for 60 s'
	silent ready
}

run 1 "$lnetd" --foreground --port 19880 --net 'tcp(late0)'
has err 'tcp\(late0\): No such device'

# Told to end while it waits, it does.
late --net 'tcp(late0)'
stop_lnetd late

# First there is no interface, then it has no address. What was added before is
# added again.
late --net 'tcp1(lo)' --net 'tcp(late0)'
ip link add late0 type veth peer name far0
ip link set far0 up
ip link set late0 up
await "$dir/late.err" 'tcp\(late0\): .*(address|Address|assign)'
ip addr add 10.9.9.1/24 dev late0
await "$dir/ready" '^lnetd: ready: 127.0.0.1@tcp1, 10.9.9.1@tcp, port'

# ---- another name ----

ip link set late0 down
ip link set late0 name ens5
ip link set ens5 up
ctl_until ' 0: ens5$' net show --net tcp
ctl_until 'status: up' net show --net tcp
ctl 0 net show --net tcp1
has out ' 0: lo$'
ctl 0 export --backup "$dir/backup"
run 1 grep -q late0 "$dir/backup"
stop_lnetd late
need_lnetd again --port 19880 --config "$dir/backup"
ctl 0 net show --net tcp
has out ' nid: 10.9.9.1@tcp$'
stop_lnetd again
need_lnetd again --port 19880
ctl 0 import "$dir/backup"
ctl 0 net del --net tcp --if ens5
stop_lnetd again

# ---- in a file, and by rules ----

ip link del ens5
late --config "$dir/backup"
ip link add ens5 type veth peer name far0
ip addr add 10.9.9.1/24 dev ens5
await "$dir/ready" '^lnetd: ready: .*10.9.9.1@tcp'
stop_lnetd late
ip link del ens5
late --ip2nets 'tcp 10.9.9.*'
ip link add late0 type veth peer name far0
ip addr add 10.9.9.2/24 dev late0
ip link set far0 up
ip link set late0 up
await "$dir/ready" '^lnetd: ready: 10.9.9.2@tcp'
stop_lnetd late

# ---- the default is not a link without a carrier ----

# Linux tells of a new link's carrier with some delay.
for ((tries = 0; tries < 600; tries++)); do
	ip -o link show late0 | grep -q 'state UP' && break
	sleep 0.1
done
need_lnetd default --port 19880 --net tcp
echo "$ready" >"$dir/out"
ran="a net without interfaces"
has out '^lnetd: ready: 10.9.9.2@tcp, port'
stop_lnetd default

finish
