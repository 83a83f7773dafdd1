#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Servers that have names: /etc/hosts, DNS and its SRV records, for which dnsmasq
# runs in a network of the test's own. Requirement J1.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
own_network dnsmasq
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
ping() { # STATUS ARGUMENT...
	run "$1" timeout 100 "$rpcping" "${client[@]}" --count 3 "${@:2}"
}

serve() { # NAME ADDRESS PORT [OPTION]...
	need_rpcserve "$1" --net "tcp($2)" --port "$3" --service echo "${@:4}"
}

: >"$dir/dns.log"
: >"$dir/dns.hosts"
serve one 127.0.1.1 7988 --lst 127.0.0.1@tcp
serve two 127.0.1.2 7988 --socket "$ULNET_SOCKET"
serve other 127.0.1.3 7001 --lst 127.0.0.1@tcp
serve home 127.0.0.1 7003
# A host may be without IPv6.
six=''
if grep -q . /proc/net/if_inet6 2>/dev/null; then
	six=1
	serve six ::1 7005
fi

# ---- without DNS ----

ping 0 in-file
has out '^in-file: echo.Raw, .*'
ping 0 127.0.1.1
ping 0 in-file@tcp
ping 0 127.0.1.3:7001
ping 0 127.0.1.3:7001@tcp
ping 0 127.0.1.1@tcp,127.0.9.9@tcp
# What is local has its addresses of itself: RFC 6761, 6.3.
ping 0 localhost:7003
ping 0 a.LocalHost.:7003@tcp
# That is another name, and nobody knows it.
ping 1 nolocalhost:7003
has err 'nolocalhost:7003: no name server takes the question'
# Nobody listens there.
run 1 timeout 100 "$rpcping" "${client[@]}" --deadline 5 --count 1 127.0.1.3:7002
has err 'does it listen on the port of the name, or else on port'

# ---- lists ----

# At the first address is nobody.
ping 0 127.0.1.9,in-file
ping 0 127.0.1.3:7001,127.0.1.1@tcp --explain
has out '127.0.1.3@tcp'
# Some servers are better than none.
ping 0 nobody.test,in-file
ping 1 nobody.test,other.test
has err "^rpcping: nobody.test,other.test: (nobody|other).test: no name server takes the question\$"
ping 2 in-file,
has err "^rpcping: in-file,: '': a NID, or the name of a host, is expected; a"

# ---- tools that name nodes by NIDs only ----

ctl 0 ping in-file
has err '^lnetctl ping: in-file is 127.0.1.1@tcp$'
has out "^- *primary nid: 127.0.1.1@tcp\$"
ctl 0 discover in-file@tcp 127.0.1.1@tcp
ctl 0 peer show --nid in-file
has out "^- *primary nid: 127.0.1.1@tcp\$"
ctl 0 path show --nid in-file
has err '^lnetctl path show: in-file is 127.0.1.1@tcp$'
# It listens at another port than this node, which connects there for the ping.
ctl 0 ping 127.0.1.3:7001 127.0.1.1@tcp
has err '^lnetctl ping: 127.0.1.3:7001 is 127.0.1.3@tcp, port 7001$'
has out "^- *primary nid: 127.0.1.3@tcp\$"
ctl 0 peer show --nid 127.0.1.3:7001
has out "^- *primary nid: 127.0.1.3@tcp\$"
ctl 255 ping 127.0.1.4:7001 127.0.1.4:7002
has err 'failed to ping 127.0.1.4@tcp: the node has this NID at another port'
ctl 255 ping 0@lo nowhere.test
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
# A port is kept for the commands that follow: this node's own is another one.
console 0 add_group others 127.0.1.3:7001
same err <<<'lst: 127.0.1.3:7001 is 127.0.1.3@tcp, port 7001'
console 0 update_group --refresh others
console 0 list_group others
has out '127.0.1.3@tcp'
console 1 add_group more 127.0.1.3:7002
has err '^lst: 127.0.1.3:7002: its servers have other ports than the name says$'
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
ctl 0 ping two.example
# It has both addresses, and NIDs of IPv4 only.
ctl 0 ping dual.example
has err ' is 127.0.1.2@tcp$'
ping 0 dual.example
# A node of IPv6, and one that has no way there.
[ -z "$six" ] || run 0 timeout 100 "$rpcping" --net 'tcp(::1)' --port 7988 --deadline 60 --count 3 \
	six.example:7005
ping 1 six.example:7005
has err 'unreachable \(::1@tcp: No route to host\)'
ctl 255 ping six.example:7005
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
ping 1 zoo://127.0.0.1/x
has err '^rpcping: zoo://127.0.0.1/x: there is no such scheme$'
ping 2 one.example:x
has err "^rpcping: one.example:x: 'x': a number was expected; a target is NIDs"

# ---- a name that changes, under calls ----

start_ping --time 1h --grace 60s --rate 200 moves.example
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

# ---- lists in files ----

printf '%s\n' '# nobody' 127.0.1.9 '127.0.1.3:7001 # it was stopped' \
	'two.example 1' >"$dir/list"
write_names 127.0.1.2 two.example
start_dns
ping 0 "file://$dir/list"
ping 1 "file://$dir/none"
same err <<<"rpcping: file://$dir/none: No such file or directory"
printf '127.0.1.1\n127.0.1.1@nonet\n' >"$dir/bad"
ping 1 "file://$dir/bad"
same err <<<"rpcping: file://$dir/bad: line 2: '127.0.1.1@nonet': no net"
# Under calls, the list is replaced, gets a mistake, goes, and comes back.
serve one 127.0.1.1 7988
echo 127.0.1.2 >"$dir/list"
ctl 0 ping "file://$dir/list"
has err ' is 127.0.1.2@tcp$'
start_ping --time 1h --grace 60s --rate 200 "file://$dir/list"
echo '127.0.1.1 x' >"$dir/new" && mv "$dir/new" "$dir/list"
await "$dir/live" "line 1: 'x': no weight: a number was expected; the addresses known"
rm "$dir/list"
await "$dir/live" 'No such file or directory; the addresses known before are kept'
echo 127.0.1.1 >"$dir/list"
stop_lnetd two
lines=$(wc -l <"$dir/live")
await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 2))
kill -INT "${pids[ping]}"
end_ping 0
has out 'lost 0,'
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
