# SPDX-License-Identifier: BSD-3-Clause
# Hosts on two rails, each host a network namespace: for sourcing, first of all, by
# bash programs, which then run in a network of their own, and so does all that they
# start. An ordinary user may do that where user namespaces are allowed.
#
# Rail R, 0 or 1, is a bridge, rail$R. Host N, called NAME, has the interface eth$R
# on it, with the address 10.9.R.N; the other end of that cable, a port of the
# bridge, is NAME$R. Each rail is an IP network of its own until hosts_join makes
# them one.

declare -A hosts=() # a process in the network of each, by name
prefix=24	    # bits of the IP network

# hosts_unshare COMMAND...: in place of this shell, with a network of its own
hosts_unshare() {
	[ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null ||
		exec unshare --net "$@"
	exec unshare --user --map-root-user --net "$@"
}

# Tries all that is needed, and says what there is not.
hosts_possible() {
	local tool why

	for tool in ip nft nsenter unshare; do
		command -v $tool >/dev/null || {
			echo "$tool is not installed"
			return 1
		}
	done
	# shellcheck disable=SC2016 # that shell's own
	why=$(hosts_unshare bash -c '
		ip link add rail type bridge &&
			ip link add port type veth peer name eth &&
			ip link set port master rail &&
			nft "add table bridge t" &&
			nft "add chain bridge t c {
				type filter hook forward priority 0; }" &&
			nft "add rule bridge t c iifname port drop" &&
			echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter' 2>&1) &&
		return
	echo "no networks of our own: $(head -n 1 <<<"$why")"
	return 1
}

# hosts_enter COMMAND...: runs the command, which is this program, in a new network,
# where this function returns at once. 1, having said why: that cannot be.
hosts_enter() {
	if [ -z "${HOSTS_ENTERED:-}" ]; then
		hosts_possible || return
		export HOSTS_ENTERED=yes
		hosts_unshare "$@"
	fi
	unset HOSTS_ENTERED
	hosts_rails
}

hosts_rails() {
	local rail

	ip link set lo up
	for rail in 0 1; do
		ip link add rail$rail type bridge forward_delay 0 &&
			ip link set rail$rail up || return
	done
	nft "add table bridge rails" &&
		nft "add chain bridge rails wire {
			type filter hook forward priority 0; }"
}

# What a host with several interfaces needs (arp_ignore, arp_announce), and for
# messages between NIDs of different rails (rp_filter).
hosts_settings='
cd /proc/sys/net/ipv4/conf &&
	for conf in all default; do
		echo 0 >$conf/rp_filter && echo 1 >$conf/arp_ignore &&
			echo 2 >$conf/arp_announce
	done &&
	ip link set lo up && echo $$ >"$1" && exec cat >/dev/null 2>&1'

# host_new NAME: without interfaces; its process lives as long as this program.
host_new() {
	local life pid said

	said=$(mktemp -u) && mkfifo "$said" || return
	exec {life}> >(exec unshare --net bash -c "$hosts_settings" host "$said")
	read -r -t 60 pid <"$said"
	rm -f "$said"
	[ -n "$pid" ] || return
	hosts[$1]=$pid
}

# hosts_add NAME N
hosts_add() {
	local pid rail

	host_new "$1" || return
	pid=${hosts[$1]}
	for rail in 0 1; do
		ip link add "$1$rail" type veth peer name eth$rail netns "$pid" &&
			ip link set "$1$rail" master rail$rail up &&
			on "$1" ip link set eth$rail up &&
			host_address "$1" add "$rail" "$2" || return
	done
}

# at NAME: "${at[@]}" before a command runs it on that host, in the same process.
at() {
	at=(nsenter --net="/proc/${hosts[$1]}/ns/net")
}

# on NAME COMMAND...: runs it there.
on() {
	local at

	at "$1"
	"${at[@]}" "${@:2}"
}

# host_address NAME add|del RAIL N
host_address() {
	on "$1" ip address "$2" "10.9.$3.$4/$prefix" dev "eth$3" || return
	[ "$2" = del ] || host_route "$1" "$3" "$4"
}

# host_link NAME up|down RAIL N
host_link() {
	on "$1" ip link set "eth$3" "$2" || return
	[ "$2" = down ] || host_route "$1" "$3" "$4"
}

# host_route NAME RAIL N: what leaves from that address does so by its interface.
host_route() {
	[ $prefix = 24 ] || on "$1" ip route replace 10.9.0.0/16 dev "eth$2" \
		src "10.9.$2.$3" table "10$2"
}

# wire_drop MATCH...: frames that match (nft(8)) are lost; nobody is told. wire_whole:
# no more.
wire_drop() {
	nft add rule bridge rails wire "$@" drop
}

# port_drop PORT: all frames there
port_drop() {
	wire_drop iifname "$1" && wire_drop oifname "$1"
}

wire_whole() {
	nft flush chain bridge rails wire
}

# rail_bytes NAME RAIL: what that host has sent and received on it so far
rail_bytes() {
	awk -v port="$1$2:" '$1 == port { printf "%.0f", $2 + $10 }' /proc/net/dev
}

# rails_conf NET...: what lnet.conf(5) has for a node of any host with an NI for each
# of these, the first one on eth0
rails_conf() {
	local rail=0 net

	echo "net:"
	for net; do
		echo "    - net type: $net"
		echo "      local NI(s): [ { interfaces: { 0: eth$rail } } ]"
		rail=$((rail + 1))
	done
}

# ---- two of them, and what befalls rail 1 ----

hosts_pair() {
	hosts_add client 1 && hosts_add server 2
}

# The same two, with a cable from one to the other instead of each rail: a link that one
# takes down is down for the other, too.
hosts_cabled() {
	local name rail

	for name in client server; do
		host_new $name || return
	done
	for rail in 0 1; do
		ip link add eth$rail netns "${hosts[client]}" type veth \
			peer name eth$rail netns "${hosts[server]}" &&
			on client ip link set eth$rail up &&
			on server ip link set eth$rail up &&
			host_address client add $rail 1 &&
			host_address server add $rail 2 || return
	done
}

# The rails are one IP network from now on, on one switch. It takes routes of each
# interface's own, or a host would send everything by its first one.
hosts_join() {
	local rail

	ip link add trunk0 type veth peer name trunk1 || return
	for rail in 0 1; do
		ip link set trunk$rail master rail$rail up &&
			host_address client del $rail 1 &&
			host_address server del $rail 2 || return
	done
	prefix=16
	for rail in 0 1; do
		host_join client $rail 1 && host_join server $rail 2 || return
	done
}

# host_join NAME RAIL N
host_join() {
	on "$1" ip rule add from "10.9.$2.$3" table "10$2" &&
		host_address "$1" add "$2" "$3"
}

client_link_down() { host_link client down 1 1; }
client_link_up() { host_link client up 1 1; }
server_link_down() { host_link server down 1 2; }
server_link_up() { host_link server up 1 2; }
client_address_del() { host_address client del 1 1; }
client_address_add() { host_address client add 1 1; }
server_address_del() { host_address server del 1 2; }
server_address_add() { host_address server add 1 2; }
# Neither host sees anything of the others.
cable_out() { ip link set server1 nomaster; }
cable_in() { ip link set server1 master rail1; }
lose_sent() { wire_drop iifname client1; }
lose_received() { wire_drop oifname client1; }
lose_both() { lose_sent && lose_received; }

# ---- four of them: a client on rail 0, a server on rail 1, routers a and b ----

declare -A routed=([client]=1 [server]=2 [a]=3 [b]=4)

hosts_routed() {
	local name

	for name in client server a b; do
		hosts_add $name "${routed[$name]}" || return
	done
}

# routed_conf NET RAIL FAR GATEWAY...: what lnet.conf(5) has for a node on one net, with
# routes to the other
routed_conf() {
	local gateway

	echo "net: [{net type: $1, local NI(s): [{interfaces: {0: eth$2}}]}]"
	echo "route:"
	for gateway in "${@:4}"; do
		echo "- {net: $3, gateway: 10.9.$2.${routed[$gateway]}@$1}"
	done
}
