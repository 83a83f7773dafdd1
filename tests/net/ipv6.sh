#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# IPv6 (requirement E5): hosts with both families on one net, of which one goes away
# under calls; routers between nets of IPv6, and between IPv6 and IPv4; what lnetctl
# shows of it, and takes.
#
#	client .1 --- rail 0 --- router .3 --- rail 1 --- server .2
. "${srcdir:-.}/tests/net/hosts.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
. "${srcdir:-.}/tests/tools/lib.sh" || exit

much=$((1 << 20)) # bytes: more than what pings and TCP's tries take
declare -A number=([client]=1 [server]=2 [router]=3)

# on_host NAME PROGRAM ARGUMENT...: until it is ready
on_host() {
	local at

	at "$1"
	start "$1" "${at[@]}" "${@:2}" --port 988 --accept all \
		--socket "$dir/$1.sock" && return
	complain "$1: not ready, exit status $started"
	sed 's/^/| /' "$dir/$1.err"
	finish
}

# v6 NAME add|del RAIL
v6() {
	on "$1" ip -6 address "$2" "fd77:$3::${number[$1]}/64" dev "eth$3" nodad
}

# carries RAIL: until the server has got and sent so much more there
carries() {
	local tries before

	before=$(rail_bytes server "$1")
	checks=$((checks + 1))
	for ((tries = 0; tries < 1200; tries++)); do
		(($(rail_bytes server "$1") - before < much)) || return 0
		sleep 0.05
	done
	complain "$ran: rail $1 carries nothing"
	sed 's/^/| /' "$dir/live"
}

# all_arrive NAME: the calls that run end, and none was lost
all_arrive() {
	kill -INT "${pids[ping]}"
	end_ping 0
	has out '^  calls [1-9][0-9]*, lost 0,'
	sed -n "s/^  calls/$1: calls/p" "$dir/out"
}

for name in "${!number[@]}"; do
	hosts_add "$name" "${number[$name]}" && v6 "$name" add 0 &&
		v6 "$name" add 1 || {
		complain "no hosts with IPv6"
		finish
	}
done
at client
ping=("${at[@]}" "$rpcping")

# ---- one net, IPv4 on rail 0, IPv6 on rail 1 ----

both() { # NAME
	echo "net:"
	echo "- net type: tcp"
	echo "  local NI(s): [{nid: 10.9.0.${number[$1]}@tcp},"
	echo "    {nid: 'fd77:1::${number[$1]}@tcp'}]"
}

both client >"$dir/client.conf"
both server >"$dir/server.conf"
on_host server "$rpcserve" --config "$dir/server.conf"
client=(--config "$dir/client.conf" --port 988)
start_ping --time 1h --verify --deadline 120 --grace 120 --inflight 16 \
	10.9.0.2@tcp
ran="both families"
carries 0
carries 1
v6 server del 1
carries 0
v6 server add 1
carries 1
host_link client down 0 1
carries 1
host_link client up 0 1
v6 client add 0 # which has gone with the link
carries 0
all_arrive "both families"
ctl 0 --socket "$dir/server.sock" net show
has out 'nid: 10.9.0.2@tcp$'
has out 'nid: fd77:1::2@tcp$'

# What an admin asks from elsewhere, by either family; and what is exported comes
# back the same.
both router >"$dir/router.conf"
on_host router "$lnetd" --foreground --config "$dir/router.conf"
ctl 0 --socket "$dir/router.sock" ping --timeout 60 fd77:1::2@tcp
has out 'primary nid: 10.9.0.2@tcp'
has out 'nid: fd77:1::2@tcp'
ctl 0 --socket "$dir/router.sock" discover fd77:1::2@tcp
ctl 0 --socket "$dir/router.sock" path show --nid fd77:1::2@tcp
has out 'family: IPv6'
ctl 0 --socket "$dir/router.sock" export --backup
cp "$dir/out" "$dir/exported"
has exported 'nid: fd77:1::3@tcp'
ctl 0 --socket "$dir/router.sock" lnet unconfigure
ctl 0 --socket "$dir/router.sock" lnet configure
ctl 0 --socket "$dir/router.sock" import "$dir/exported"
ctl 0 --socket "$dir/router.sock" export --backup
ran="export after import"
same out <"$dir/exported"

# An interface stands for its IPv4 address; with large NIDs for that of IPv6. No NID
# says an address that each link has.
ctl 0 --socket "$dir/router.sock" lnet unconfigure
ctl 0 --socket "$dir/router.sock" lnet configure --large
ctl 0 --socket "$dir/router.sock" net add --net tcp --if eth0
ctl 0 --socket "$dir/router.sock" net add --net tcp1 --if fd77:1::3
ctl 0 --socket "$dir/router.sock" net show
has out 'nid: fd77::3@tcp$'
has out 'nid: fd77:1::3@tcp1$'
ctl 156 --socket "$dir/router.sock" net add --net tcp2 --if fd77:9::3
has err 'no address that can be used'
local_addr=$(on router ip -6 -o address show dev eth1 scope link |
	awk '{ sub(/\/.*/, "", $4); print $4 }')
ctl 156 --socket "$dir/router.sock" net add --net tcp2 --if "$local_addr"
has err 'no address that can be used'
# Nor does a backup of that forget which family it was.
ctl 0 --socket "$dir/router.sock" net add --net tcp4 --if 10.9.0.3
ctl 0 --socket "$dir/router.sock" export --backup
cp "$dir/out" "$dir/exported"
ctl 0 --socket "$dir/router.sock" lnet unconfigure
ctl 0 --socket "$dir/router.sock" lnet configure
ctl 0 --socket "$dir/router.sock" import "$dir/exported"
ctl 0 --socket "$dir/router.sock" export --backup
ran="export after import, large NIDs"
same out <"$dir/exported"
has out 'nid: fd77::3@tcp$'
has out 'nid: 10.9.0.3@tcp4$'
# Settings come first, wherever they stand in a file.
cat >"$dir/large.conf" <<\.
net: [{net type: tcp5, local NI(s): [{interfaces: {0: eth0}}]}]
global: {large_nids: 1}
.
ctl 0 --socket "$dir/router.sock" lnet unconfigure
ctl 0 --socket "$dir/router.sock" lnet configure
ctl 0 --socket "$dir/router.sock" import "$dir/large.conf"
ctl 0 --socket "$dir/router.sock" net show --net tcp5
has out 'nid: fd77::3@tcp5$'
ctl 0 --socket "$dir/router.sock" net add --ip2net 'tcp3 fd77:1::/64'
ctl 0 --socket "$dir/router.sock" net show --net tcp3
has out 'nid: fd77:1::3@tcp3$'
stop_lnetd router
stop_lnetd server

# ---- a router between nets of IPv6 ----

# node NID NET GATEWAY: a node with a route to NET
node() {
	echo "net: [{net type: ${1#*@}, local NI(s): [{nid: '$1'}]}]"
	echo "route: [{net: $2, gateway: '$3'}]"
}

# through NAME SERVER: calls go through the router
through() {
	start_ping --time 1h --verify --deadline 120 --grace 120 --inflight 16 \
		"$2"
	ran=$1
	carries 1
	all_arrive "$1"
}

node fd77:0::1@tcp1 tcp2 fd77:0::3@tcp1 >"$dir/client.conf"
node fd77:1::2@tcp2 tcp1 fd77:1::3@tcp2 >"$dir/server.conf"
on_host router "$lnetd" --foreground \
	--net "tcp1(fd77:0::3),tcp2(fd77:1::3)"
ctl 0 --socket "$dir/router.sock" set routing 1
on_host server "$rpcserve" --config "$dir/server.conf"
through "routed, IPv6" fd77:1::2@tcp2
stop_lnetd server
stop_lnetd router

# ---- a router between IPv6 and IPv4 ----

# Whoever has only an IPv4 address must offer its router the protocol that has room
# for the other's.
node 10.9.1.2@tcp2 tcp1 10.9.1.3@tcp2 >"$dir/server.conf"
echo "global: {large_nids: 1}" >>"$dir/server.conf"
on_host router "$lnetd" --foreground --net "tcp1(fd77:0::3),tcp2(10.9.1.3)"
ctl 0 --socket "$dir/router.sock" set routing 1
ctl 0 --socket "$dir/router.sock" set large_nids 1
on_host server "$rpcserve" --config "$dir/server.conf"
through "routed, IPv6 to IPv4" 10.9.1.2@tcp2
stop_lnetd server
# Else it is told what is missing.
ctl 0 --socket "$dir/router.sock" set large_nids 0
sed -i '/^global/d' "$dir/server.conf"
on_host server "$rpcserve" --config "$dir/server.conf"
ctl 0 --socket "$dir/router.sock" ping --timeout 60 10.9.1.2@tcp2
run 1 "${ping[@]}" --config "$dir/client.conf" --port 988 --count 1 \
	--deadline 2 10.9.1.2@tcp2
has router.err 'IPv6 NID cannot go over .* \(set large_nids to 1 on both nodes\)'
finish
