#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Servers that register themselves in etcd, and clients that find them there, with an
# etcd that comes and goes. It runs in a network of the test's own, in which all
# ports are free. Requirement J1.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
own_network etcd

# start_etcd DATA: returns when it serves.
start_etcd() {
	local from=$(($(wc -l <"$dir/etcd.log") + 1))

	ETCD_UNSUPPORTED_ARCH=arm64 etcd --data-dir "$dir/$1" --logger zap \
		--listen-client-urls http://127.0.0.1:2379 \
		--advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380 \
		--log-outputs stderr 2>>"$dir/etcd.log" &
	pids[etcd]=$!
	await "$dir/etcd.log" 'serving (insecure )?client (requests|traffic)' "$from"
}

end_etcd() {
	kill -KILL "${pids[etcd]}"
	wait "${pids[etcd]}" 2>/dev/null
	unset 'pids[etcd]'
}

client=(--net 'tcp(127.0.0.1)' --port 7988 --deadline 60)
ping() { # STATUS ARGUMENT...
	run "$1" timeout 100 "$rpcping" "${client[@]}" --count 3 "${@:2}"
}

name=etcd://127.0.0.1:2379/rpc/echo
serve() { # NAME ADDRESS [OPTION]...: returns when it is registered
	need_rpcserve "$1" --net "tcp($2)" --port 7988 --service echo \
		--log info --register "$name" --register-ttl 10 "${@:3}"
	[ -z "${pids[etcd]:-}" ] ||
		await "$dir/$1.err" 'etcd: registered below rpc/echo/'
}

: >"$dir/etcd.log"

# ---- what is wrong ----

run 1 timeout 100 "$rpcserve" --net 'tcp(127.0.1.1)' --port 7988 --register x
has err '^rpcserve: --register x: etcd://HOST:PORT/PREFIX is expected$'
run 2 "$rpcserve" --net 'tcp(127.0.1.1)' --register "$name" --register-ttl 1
has err '--register-ttl 1: a number from 2 to 3600 is expected'
for text in "/x:HOST:PORT of etcd is expected" "h:0/x:a port from 1 to 65535" \
	"h,/x:HOST:PORT of etcd is expected" "h/:/PREFIX of keys is expected" \
	"u@h/x:HOST:PORT of etcd" "[::1/x:no IPv6 address in brackets"; do
	what=${text##*/x:} what=${what##*/:}
	ping 1 "etcd://${text%%:"$what"}"
	has err "^rpcping: etcd://.*: $what"
done
ping 1 "$name"
has err "^rpcping: $name: etcd at 127.0.0.1:2379: Could"

# What calls itself etcd may say anything.
perl -MIO::Socket::INET -e '
	my $l = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1:2399", ReuseAddr => 1)
		or die;
	$| = 1;
	print "ready\n";
	while (my $c = $l->accept) {
		while (<$c>) { last if /^\r?$/ }
		my $said = q({"error":"x","message":"\u001b[2J\r\n\u009b31m\u263a"});
		print $c "HTTP/1.1 400 Bad\r\nContent-Length: " . length($said) .
			"\r\nConnection: close\r\n\r\n$said";
		close $c;
	}' >"$dir/hostile.out" 2>"$dir/hostile.err" &
pids[hostile]=$!
await "$dir/hostile.out" ready
shown='etcd: \?\[2J\?\?\?\?31m\?\?\?$'
ping 1 etcd://127.0.0.1:2399/x
has err "$shown"
run 1 timeout 100 "$tools/ulrpc" --net 'tcp(127.0.0.1)' etcd://127.0.0.1:2399/x list
has err "$shown"
ctl 255 ping etcd://127.0.0.1:2399/x
has err "$shown"
kill -KILL "${pids[hostile]}"
wait "${pids[hostile]}" 2>/dev/null
unset 'pids[hostile]'

# ---- servers come and go ----

start_etcd one
ping 1 "$name"
same err <<<"rpcping: $name: no server is registered"
serve a 127.0.1.1
ping 0 "$name"
# The first host is no etcd.
ping 0 etcd://127.0.0.1:1,127.0.0.1/rpc/echo/
ping 1 etcd://127.0.0.1/rpc/ech
# A node that listens at another port itself.
need_rpcserve p --net 'tcp(127.0.1.8)' --port 7001 --socket "$ULNET_SOCKET"
ctl 0 ping etcd://127.0.0.1/rpc/echo
has err '^lnetctl ping: etcd://127.0.0.1/rpc/echo is 127.0.1.1@tcp, port 7988$'
has out '^- *primary nid: 127.0.1.1@tcp$'
stop_lnetd p

start_ping --time 1h --grace 60s --rate 200 --log info "$name"
serve b 127.0.1.2 --register-ttl 2
await "$dir/live" "names: $name: 2 addresses"
# Both are servers of a set.
ping 0 --replicas turns "$name"
has out '^  server 127.0.1.[12]@tcp: answered [0-9]+ '
# One that dies is gone when its lease is over; one that ends, at once. Calls go
# to a, the first.
lines=$(($(wc -l <"$dir/live") + 1))
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null
unset 'pids[b]'
await "$dir/live" "names: $name: 1 address\$" "$lines"
serve c 127.0.1.3
lines=$(($(wc -l <"$dir/live") + 1))
stop_lnetd c
await "$dir/live" "names: $name: 1 address\$" "$lines"

# ---- etcd comes and goes ----

lines=$(($(wc -l <"$dir/live") + 1))
end_etcd
await "$dir/live" "names: $name: etcd at .*; the addresses known before are kept" "$lines"
await "$dir/a.err" 'etcd: below rpc/echo/ this server is not registered, or'
ping 1 "$name"
await "$dir/live" ' [1-9][0-9]* calls/s' "$(wc -l <"$dir/live")"
# The same etcd again: the watch goes on.
lines=$(($(wc -l <"$dir/live") + 1))
start_etcd one
await "$dir/live" "names: $name: [12] address" "$lines"
serve d 127.0.1.4
await "$dir/live" "names: $name: 2 addresses" "$lines"
# Another etcd, which knows nothing: servers register again.
lines=$(($(wc -l <"$dir/live") + 1))
end_etcd
# Who did not notice that it was away has nothing to tell.
await "$dir/live" "names: $name: etcd at .*; the addresses known before are kept" "$lines"
lines=$(($(wc -l <"$dir/live") + 1))
start_etcd two
await "$dir/live" "names: $name: 2 addresses" "$lines"
stop_lnetd a
await "$dir/live" "names: $name: 1 address\$" "$lines"
lines=$(wc -l <"$dir/live")
await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 2))
kill -INT "${pids[ping]}"
end_ping 0
has out 'lost 0,'

# ---- over TLS, and with a password ----

# certificate NAME: in $dir/NAME.pem, with its key in NAME.key. It has no common name:
# with users, etcd's gateway refuses clients whose certificates have one.
certificate() {
	openssl req -newkey rsa:2048 -nodes -keyout "$dir/$1.key" -subj "/O=$1" \
		-out "$dir/$1.csr" 2>/dev/null &&
		openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" \
			-CAcreateserial -days 2 -out "$dir/$1.pem" \
			-extfile <(echo "subjectAltName=IP:127.0.0.1") 2>/dev/null
}

# ask PATH JSON [HEAD]: of the etcd that asks for certificates.
ask() {
	curl -sS --cacert "$dir/ca.pem" --cert "$dir/node.pem" --key "$dir/node.key" \
		${3:+-H "$3"} -d "$2" "https://127.0.0.1:3379/v3/$1" >"$dir/asked" 2>&1 &&
		! grep -q '"error"' "$dir/asked" || complain "$1: $(cat "$dir/asked")"
}

settings() { # LINE...: what clients and servers have from now on
	rm -f "$dir/settings"
	(umask 077 && printf '%s\n' "$@" >"$dir/settings")
	export ULNET_ETCD=$dir/settings
}

if type openssl curl >/dev/null 2>&1; then
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority \
		-keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
	certificate etcd
	certificate node
	from=$(($(wc -l <"$dir/etcd.log") + 1))
	ETCD_UNSUPPORTED_ARCH=arm64 etcd --data-dir "$dir/tls" --logger zap \
		--listen-client-urls https://127.0.0.1:3379 \
		--advertise-client-urls https://127.0.0.1:3379 \
		--listen-peer-urls http://127.0.0.1:3380 \
		--initial-advertise-peer-urls http://127.0.0.1:3380 \
		--initial-cluster default=http://127.0.0.1:3380 \
		--cert-file "$dir/etcd.pem" --key-file "$dir/etcd.key" \
		--client-cert-auth --trusted-ca-file "$dir/ca.pem" \
		--log-outputs stderr 2>>"$dir/etcd.log" &
	pids[etcds]=$!
	await "$dir/etcd.log" 'serving client (requests|traffic) securely' "$from"
	plain=$name name=etcds://127.0.0.1:3379/rpc/echo

	# Nobody knows this etcd's authority, and it does not know who asks.
	unset ULNET_ETCD
	ping 1 "$name"
	has err "^rpcping: $name: etcd at 127.0.0.1:3379: (SSL|Problem)"
	settings "ca: $dir/ca.pem"
	ping 1 "$name"
	has err "^rpcping: $name: etcd at 127.0.0.1:3379: "
	settings "ca: $dir/ca.pem" "cert: $dir/node.pem" "key: $dir/node.key"
	ping 1 "$name"
	same err <<<"rpcping: $name: no server is registered"
	serve f 127.0.1.6
	ping 0 "$name"
	stop_lnetd f

	# Users.
	ask auth/user/add '{"name": "root", "password": "toor"}'
	ask auth/role/add '{"name": "root"}'
	ask auth/user/grant '{"user": "root", "role": "root"}'
	ask auth/enable '{}'
	ping 1 "$name"
	has err "^rpcping: $name: etcd: .*user name is empty"
	tls=("ca: $dir/ca.pem" "cert: $dir/node.pem" "key: $dir/node.key")
	settings "${tls[@]}" "user: root" "password: wrong"
	ping 1 "$name"
	has err "^rpcping: $name: etcd: .*authentication failed"
	settings "${tls[@]}" "user: root" "password: toor"
	serve f 127.0.1.6
	ping 0 "$name"
	stop_lnetd f
	chmod 644 "$dir/settings"
	ping 1 "$name"
	has err "^rpcping: $name: etcd: $dir/settings: others may read or change it"
	unset ULNET_ETCD
	kill -KILL "${pids[etcds]}"
	wait "${pids[etcds]}" 2>/dev/null
	unset 'pids[etcds]'
	name=$plain
fi

# A server ends although there is no etcd, and starts without one.
end_etcd
stop_lnetd d
serve e 127.0.1.5
start_etcd one
await "$dir/e.err" 'etcd: registered below rpc/echo/'
ping 0 "$name"
stop_lnetd e
end_etcd

finish
