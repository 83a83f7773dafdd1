# SPDX-License-Identifier: BSD-3-Clause
# Calls over two rails, and what befalls one of them: for sourcing after hosts.sh and
# tools/lib.sh. ULNET_RAILS: how often it does, for each load and each harm (1).

rounds=${ULNET_RAILS:-1}
some=$((1 << 20))  # bytes of calls on a rail: more than what pings take
much=$((4 << 20))  # ... so that what is tried on a lost rail is little beside it
large=$((16 << 20)) # ... if a try may be that of a bulk transfer

# ---- what is seen of it ----

# Calls are answered: in two more live lines, as the first one may be of before.
recovered() {
	local line

	line=$(wc -l <"$dir/live")
	await "$dir/live" ' [1-9][0-9]* calls/s' $((line + 2))
}

# carries R BYTES: until the client has sent and received that many more on rail R.
carries() {
	local tries before

	before=$(rail_bytes client "$1")
	checks=$((checks + 1))
	for ((tries = 0; tries < 1200; tries++)); do
		(($(rail_bytes client "$1") - before < $2)) || return 0
		sleep 0.05
	done
	complain "$ran: rail $1 carries nothing"
	sed 's/^/| /' "$dir/live"
	return 1
}

# While rail 0 carries that much, rail 1 has next to nothing: what TCP and pings
# try.
alone() {
	local before

	before=$(rail_bytes client 1)
	carries 0 $much
	before=$(($(rail_bytes client 1) - before))
	expect "$ran: rail 1 had $before bytes" test $before -lt $((much / 4))
}

# ---- calls, and what befalls them ----

# Between NIs of different rails there is a way to the server over the one and a way
# back over the other, which is used while rail 1 is good for one direction.
half() {
	carries 0 $much
}

# All interfaces that are left can reach each other: the client uses both of its own,
# when the server has lost one.
both() {
	carries 0 $some && carries 1 $much && carries 0 $much
}

# lose WHAT TAKE SEEN GIVE ARGUMENT...: while the functions take rail 1, look at what
# is left, and give it
lose() {
	local what=$1 take=$2 seen=$3 give=$4 round

	start_ping --time 1h --verify --explain --deadline 120 --grace 120 \
		"${@:5}" "$server"
	ran=$what
	for ((round = 0; round < rounds; round++)); do
		carries 0 $some && carries 1 $some || break
		$take
		recovered
		$seen
		$give
	done
	carries 1 $some
	kill -INT "${pids[ping]}"
	end_ping 0
	has out '^  calls [1-9][0-9]*, lost 0,'
	sed -n "s/^  calls/$what: calls/p" "$dir/out"
}

# all_harms NAME HALF ARGUMENT...: HALF is what is seen when frames of one direction
# are lost.
all_harms() {
	lose "$1: client's link down" client_link_down alone client_link_up \
		"${@:3}"
	lose "$1: server's link down" server_link_down alone server_link_up \
		"${@:3}"
	lose "$1: client's address removed" client_address_del alone \
		client_address_add "${@:3}"
	lose "$1: server's address removed" server_address_del alone \
		server_address_add "${@:3}"
	lose "$1: cable out" cable_out alone cable_in "${@:3}"
	lose "$1: sent frames lost" lose_sent "$2" wire_whole "${@:3}"
	lose "$1: received frames lost" lose_received "$2" wire_whole "${@:3}"
	lose "$1: frames lost" lose_both alone wire_whole "${@:3}"
}

# ---- nodes ----

# serve NET0 NET1: the server, on these; the client is configured in the same way.
serve() {
	local at

	rails_conf "$1" "$2" >"$dir/conf"
	client=(--config "$dir/conf" --port 988)
	server=10.9.0.2@$1
	at server
	start server "${at[@]}" "$rpcserve" --config "$dir/conf" --port 988 \
		--accept all && return
	complain "rpcserve: not ready, exit status $started"
	sed 's/^/| /' "$dir/server.err"
	finish
}

hosts_pair || {
	complain "no hosts"
	finish
}
at client
ping=("${at[@]}" "$rpcping")
