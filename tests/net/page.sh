#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The command lines of lnet_multirail(7), taken from the page, on two hosts: they do
# what the page says.
. "${srcdir:-.}/tests/net/hosts.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
. "${srcdir:-.}/tests/tools/lib.sh" || exit

PATH=$PWD/tools/bin:$PATH

# The page, with the addresses of these hosts: the first host is client, the second
# one server.
sed 's/10\.0\.\([01]\)\./10.9.\1./g' "${srcdir:-.}/man/man7/lnet_multirail.7" |
	sed 's/\\-/-/g; s/\\e/\\/g' >"$dir/page"

# block PATTERN: the first literal text of the page that has a line like that (ERE)
block() {
	PATTERN=$1 awk '/^\.Bd -literal/ { on = 1; text = ""; next }
		/^\.Ed/ && on { on = 0; if (text ~ ENVIRON["PATTERN"]) {
			printf "%s", text; exit } }
		on { text = text $0 "\n" }' "$dir/page"
}

# Of a block, the lines that are typed; those that go on are joined.
typed() { # PATTERN
	block "$1" | sed -n ':a; /\\$/ { N; s/\\\n *//; ba; }; s/^# //p'
}

# page HOST STATUS COMMAND: typed on that host
page() {
	at "$1"
	run "$2" "${at[@]}" env ULNET_SOCKET="$dir/$1.sock" bash -c "$3"
	ran="$1: $3"
}

# pages HOST PATTERN: all that is typed in a block
pages() {
	local line

	expect "the page has $2" test -n "$(typed "$2")"
	while IFS= read -r line; do
		page "$1" 0 "$line"
	done < <(typed "$2")
}

node() { # HOST ARGUMENT...
	at "$1"
	start "$1" "${at[@]}" lnetd --foreground --socket "$dir/$1.sock" \
		"${@:2}" && return
	complain "lnetd on $1: $(cat "$dir/$1.err")"
	finish
}

# What ctl of lib.sh runs, too.
lnetctl=client_ctl
client_ctl() {
	on client "$PWD/tools/bin/lnetctl" --socket "$dir/client.sock" "$@"
}

hosts_pair || exit

# ---- from nothing to two rails ----

block '^# cat /etc/ulnet/lnet.conf' | sed '/^#/d' >"$dir/lnet.conf"
run 0 grep -c interfaces "$dir/lnet.conf"
node client --config "$dir/lnet.conf"
node server
pages server '^# lnetctl net add'
page client 0 'lnetctl export --backup'
cp "$dir/out" "$dir/backup"
page server 0 'lnetctl export --backup'
same out <"$dir/backup"
page client 0 "$(typed '^# lnetctl discover')"
block '^# lnetctl discover' | sed '/^#/d' >"$dir/found"
same out <"$dir/found"
pages client '^# lnetctl ping --source'
# The states that lnet_states(7) has for interfaces without a link, and for their net.
on client ip link set eth1 down
ctl_until '^            state name: down$' net show -v 5 --net tcp
has out '^      state name: active$'
on client ip link set eth0 down
ctl_until '^      state name: inactive$' net show -v 5 --net tcp
for rail in 0 1; do
	host_link client up $rail 1
done
ctl_until '^      state name: active$' net show -v 5 --net tcp
pages client '^# lnetctl ping --source'
# Some say that they take a command in their text.
for line in 'path show --nid 10.9.0.2@tcp' 'net show -v 2' 'peer show -v 2' \
	'export --backup' 'debug recovery' 'debug peer --nid 10.9.0.2@tcp'; do
	page client 0 "lnetctl $line"
	silent err
done
# Neither interface goes to the peer's on the other rail, an IP network of its own.
page client 0 'lnetctl path show --nid 10.9.0.2@tcp'
has out '^ *why: preference$'
pages client '^# lnetctl peer add'
page client 0 'lnetctl peer show --nid 10.9.1.2@tcp'
has out '^-     primary nid: 10.9.0.2@tcp$'
pages client '^# lnetctl net set'
# It comes back by itself.
for ((tries = 0; tries < 600; tries++)); do
	page client 0 'lnetctl debug recovery --local'
	[ -s "$dir/out" ] || break
	sleep 0.1
done
silent out
page client 0 'lnetctl net show -v 2 --net tcp'
expect "both are well" test "$(grep -c '^ *health value: 1000$' "$dir/out")" = 2
page client 0 'lnetctl net del --nid 10.9.1.1@tcp'
page client 0 'lnetctl net add --net tcp1 --if eth1'
page server 0 'lnetctl net del --nid 10.9.1.2@tcp'
page server 0 'lnetctl net add --net tcp1 --if eth1'
page client 0 'lnetctl ping --source 10.9.1.1@tcp1 10.9.1.2@tcp1'
stop_lnetd client
stop_lnetd server

# ---- one fails while calls are under way; in less time ----

words=()
at server
eval "words=($(typed '^# rpcserve'))"
start server "${at[@]}" "${words[@]}" || complain "rpcserve: $(cat "$dir/server.err")"
at client
eval "words=($(typed '^# rpcping' | sed 's/--time 20/--time 4/'))"
ping=("${at[@]}" "${words[@]}") client=()
start_ping
on client bash -c "$(typed '^# ip link set eth1 down' | sed 's/sleep 5/sleep 1/')"
end_ping 0
has out 'calls [1-9][0-9]*, lost 0,'
stop_lnetd server

# ---- both interfaces in one IP network ----

ip link add trunk0 type veth peer name trunk1
ip link set trunk0 master rail0 up
ip link set trunk1 master rail1 up
for n in 1 2; do
	[ $n = 1 ] && host=client || host=server
	on $host ip address del 10.9.1.$n/24 dev eth1
	on $host ip address add 10.9.0.1$n/24 dev eth1
	# The page has the first host's.
	while IFS= read -r line; do
		page $host 0 "$line"
	done < <(typed '^# sysctl' | sed -E "s/(10\.9\.0\.1?)1( |\$)/\1$n\2/g")
	node $host --net 'tcp(eth0,eth1)'
done
page client 0 'lnetctl ping --timeout 60 --source 10.9.0.11@tcp 10.9.0.12@tcp'
page client 0 'lnetctl ping --timeout 60 --source 10.9.0.1@tcp 10.9.0.12@tcp'
# By its own cable, as the first one does not work any more.
ip link set client0 nomaster
page client 0 'lnetctl ping --timeout 60 --source 10.9.0.11@tcp 10.9.0.12@tcp'
finish
