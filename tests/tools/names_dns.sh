#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Servers that have names: /etc/hosts, DNS and its SRV records, for which dnsmasq
# runs in a network of the test's own. What needs no names: names.sh. Requirement J1.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
own_network dnsmasq
# Where a machine is busy, programs would say that their turns are late.
export ULNET_LOG=loop=err
echo 'nameserver 127.0.0.1' >"$dir/resolv.conf"
echo '127.0.1.1 in-file' >"$dir/hosts"
for file in resolv.conf hosts; do
	mount --bind "$dir/$file" /etc/$file || skip "cannot replace /etc/$file"
done

# write_names ADDRESS NAME...: what DNS knows
write_names() {
	printf '%s %s\n' "$@" >"$dir/dns.new"
	mv "$dir/dns.new" "$dir/dns.hosts"
}

# start_dns [OPTION]...
start_dns() {
	local from=$(($(wc -l <"$dir/dns.log") + 1))

	dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --no-hosts \
		--addn-hosts="$dir/dns.hosts" --listen-address=127.0.0.1 \
		--bind-interfaces --local=/example/ --local-ttl=1 \
		--log-facility="$dir/dns.log" --log-queries --pid-file= "$@" 2>/dev/null &
	pids[dns]=$!
	await "$dir/dns.log" 'started, version' "$from"
}

end_dns() {
	kill -KILL "${pids[dns]}"
	wait "${pids[dns]}" 2>/dev/null
	unset 'pids[dns]'
}

client=(--net 'tcp(127.0.0.1)' --port 7988 --deadline 60)
# Who has to be answered waits, also where a busy machine takes 5 s to connect.
ping() { # STATUS ARGUMENT...
	local -a wait=(--wait)

	[ "$1" = 0 ] || wait=()
	run "$1" timeout 100 "$rpcping" "${client[@]}" "${wait[@]}" --count 3 "${@:2}"
}

serve() { # NAME ADDRESS PORT [OPTION]...
	need_rpcserve "$1" --net "tcp($2)" --port "$3" --service echo "${@:4}"
}

: >"$dir/dns.log"
: >"$dir/dns.hosts"
serve one 127.0.1.1 7988 --lst 127.0.0.1@tcp
serve two 127.0.1.2 7988 --socket "$ULNET_SOCKET"
serve other 127.0.1.3 7001 --lst 127.0.0.1@tcp
# A host may be without IPv6.
six=''
if grep -q . /proc/net/if_inet6 2>/dev/null; then
	six=1
	serve six ::1 7005
fi

# ---- without DNS ----

ping 0 in-file
has out '^in-file: echo.Raw, .*'
ping 0 in-file@tcp
# That is another name, and nobody knows it.
ping 1 nolocalhost:7001
has err 'nolocalhost:7001: no name server takes the question'

# ---- lists ----

# Some servers are better than none.
ping 0 nobody.test,in-file
ping 1 nobody.test,other.test
has err "^rpcping: nobody.test,other.test: (nobody|other).test: no name server takes the question\$"

# ---- tools that name nodes by NIDs only ----

ctl 0 ping --timeout 60 in-file
has err '^lnetctl ping: in-file is 127.0.1.1@tcp$'
has out "^- *primary nid: 127.0.1.1@tcp\$"
ctl 0 discover in-file@tcp 127.0.1.1@tcp
ctl 0 peer show --nid in-file
has out "^- *primary nid: 127.0.1.1@tcp\$"
ctl 0 path show --nid in-file
has err '^lnetctl path show: in-file is 127.0.1.1@tcp$'
ctl 255 ping --timeout 60 0@lo nowhere.test
same err <<<'lnetctl ping: nowhere.test: no name server takes the question'
silent out

console() { # STATUS ARGUMENT...
	run "$1" env LST_SESSION=names XDG_RUNTIME_DIR="$dir" "$lst" \
		--net 'tcp(127.0.0.1)' --port 7988 "${@:2}"
}
console 0 new_session lab
console 0 add_group servers in-file
same err <<<'lst: in-file is 127.0.1.1@tcp'
console 0 list_group servers
has out '127.0.1.1@tcp'
console 1 add_group others nowhere.test
same err <<<'lst: nowhere.test: no name server takes the question'
console 0 end_session

# ---- DNS ----

write_names 127.0.1.1 one.example 127.0.1.2 two.example \
	127.0.1.9 both.example 127.0.1.2 both.example \
	127.0.1.3 other.example 127.0.1.1 moves.example \
	127.0.1.2 dual.example ::1 dual.example ::1 six.example
start_dns --srv-host=_rpc._tcp.example,two.example,7988,5,10 \
	--srv-host=_rpc._tcp.example,other.example,7001,2,10 \
	--srv-host=_rpc._tcp.example,nobody.example,7988,1,10 \
	--srv-host=_empty._tcp.example \
	--txt-record=text.example,text

ping 0 one.example
ping 0 dns:///two.example
ping 0 one.example@tcp
ping 0 other.example:7001
# At 127.0.1.9 is nobody.
ping 0 both.example
ping 0 nowhere.example,other.example:7001,one.example --explain
has out '127.0.1.3@tcp'
ctl 0 ping --timeout 60 two.example
# It has both addresses, and NIDs of IPv4 only.
ctl 0 ping --timeout 60 dual.example
has err ' is 127.0.1.2@tcp$'
ping 0 dual.example
# A node of IPv6, and one that has no way there.
[ -z "$six" ] || run 0 timeout 100 "$rpcping" --net 'tcp(::1)' --port 7988 --deadline 60 --count 3 \
	six.example:7005
ping 1 six.example:7005
has err 'unreachable \(::1@tcp: No route to host\)'
ctl 255 ping --timeout 60 six.example:7005
has err "failed to ping ::1@tcp: No route to host"
# Each address is a server of a set; at one of them is nobody.
ping 0 --replicas turns both.example
has out '^  server 127.0.1.2@tcp: answered 3 '
# Of the services, the first has no address, and the second has a port of its own.
ping 0 srv:///_rpc._tcp.example --explain
has out '127.0.1.3@tcp'
lacks out '127.0.1.2@tcp'
stop_lnetd other
ping 0 srv:///_rpc._tcp.example --explain
has out '127.0.1.2@tcp'

ping 1 nowhere.example
same err <<<'rpcping: nowhere.example: there is no such name'
ping 1 text.example
has err '^rpcping: text.example: the name has no address$'
ping 1 srv:///_none._tcp.example
has err '^rpcping: srv:///_none._tcp.example: there is no such name$'
ping 1 srv:///_empty._tcp.example
has err '^rpcping: srv:///_empty._tcp.example: the name has no address$'
ping 1 nowhere.test
has err '^rpcping: nowhere.test: no name server takes the question$'
# ---- a name that changes, under calls ----

start_ping --wait --time 1h --grace 60s --rate 50 moves.example
write_names 127.0.1.2 moves.example
kill -HUP "${pids[dns]}"
# It has been looked up since then.
await "$dir/dns.log" 'moves.example is 127.0.1.2'
lines=$(wc -l <"$dir/live")
stop_lnetd one
await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 2))
# And when the name server is gone, what is known stays.
end_dns
await "$dir/live" 'the addresses known before are kept'
lines=$(wc -l <"$dir/live")
await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 2))
kill -INT "${pids[ping]}"
end_ping 0
has out 'lost 0,'

# ---- names in files ----

printf '%s\n' '# nobody' 127.0.1.9 '127.0.1.3:7001 # it was stopped' \
	'two.example 1' >"$dir/list"
write_names 127.0.1.2 two.example
start_dns
ping 0 "file://$dir/list"
end_dns

# ---- a name server that is gone, or silent ----

ping 1 two.example
has err '^rpcping: two.example: no name server takes the question$'
start_dns
kill -STOP "${pids[dns]}"
ping 1 two.example
has err '^rpcping: two.example: no name server answers$'
end_dns

finish
