#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Metrics, of lnetd and rpcserve, and by lnetctl of any node: what they say is what Prometheus
# reads, and what lnetctl says; nobody who asks, or only connects, stops the node (requirements H8, I1).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

src=${srcdir:-.}
perl -MIO::Socket::INET -MJSON::PP -e 1 || skip "perl lacks IO::Socket or JSON::PP"
free_port port || skip "perl cannot find a free port"
free_port web

# http METHOD PATH: head to $dir/head, body to $dir/out.
http() {
	ran="$1 $2"
	perl -MIO::Socket::INET -e '
		my ($port, $method, $path, $head) = @ARGV;
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
			PeerPort => $port) or die "connect: $!";
		print $s "$method $path HTTP/1.1\r\nHost: x\r\n",
			"Connection: close\r\n\r\n";
		local $/;
		my ($h, $body) = split /\r\n\r\n/, <$s>, 2;
		open my $f, ">", $head;
		print $f "$h\n";
		print $body // "";' "$web" "$1" "$2" "$dir/head" >"$dir/out" ||
		complain "$ran: no answer"
}

value() { # SERIES: of the last answer
	awk -v series="$1 " 'index($0, series) == 1 { print $2 }' "$dir/out"
}

# http_until SERIES VALUE: what is counted when a reply has been sent may come after it.
http_until() {
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		http GET /metrics
		[ "$(value "$1")" != "$2" ] || return
		sleep 0.1
	done
	complain "$1 never was $2"
}

# ---- command line ----

for wrong in 0 65536 x 127.0.0.1: :9988 host.example:9988 ::1:9988 1.2.3:a; do
	run 2 "$lnetd" --foreground --metrics $wrong
	has err "lnetd: --metrics $wrong: \[ADDRESS:\]PORT is expected"
done
run 2 "$lnetd" --foreground --metrics 9988 --metrics-peers 10001
has err 'metrics-peers 10001'

# ---- what it says ----

need_lnetd a --net 'tcp(127.0.0.1),tcp1(127.0.0.1)' --port "$port" \
	--metrics "127.0.0.1:$web" --metrics-peers 2
need_lnetd b --net 'tcp(127.0.0.2)' --port "$port" --socket "$dir/b.sock"
ctl 0 ping --timeout 60 127.0.0.2@tcp
ctl 0 set routing 1
ctl 0 route add --net tcp7 --gateway 127.0.0.2@tcp
ctl 0 route add --net tcp8 --gateway 127.0.0.99@tcp
ctl_until '^      state name: down$' route show --net tcp7 --verbose 5 # it is no router
http GET /metrics
grep -q '^HTTP/1.1 200' "$dir/head" || complain "GET: $(head -n 1 "$dir/head")"
expect "type of the text" grep -qi \
	'^content-type: text/plain; version=0.0.4; charset=utf-8' "$dir/head"
expect "the time until an answer" test \
	"$(value 'ulnet_ni_answer_seconds_count{nid="127.0.0.1@tcp",net="tcp",interface="127.0.0.1"}')" \
	-gt 0
expect "both interfaces" test "$(grep -c '^ulnet_ni_up{nid="127' "$dir/out")" = 2
has out '^ulnet_peer_health\{nid="127.0.0.2@tcp",peer="127.0.0.2@tcp",net="tcp"\} 1000$'
has out '^ulnet_ni_sent_messages_total\{nid="127.0.0.1@tcp",net="tcp",interface="127.0.0.1",type="get"\} [1-9]'
has out '^ulnet_send_total [1-9]'
has out '^ulnet_peer_nis_hidden 0$'
has out '^ulnet_ni_queued_messages\{nid="127.0.0.1@tcp",net="tcp",interface="127.0.0.1"\} 0$'
has out '^ulnet_route_up\{net="tcp7",gateway="127.0.0.2@tcp"\} 0$'
has out '^ulnet_route_down\{net="tcp7",gateway="127.0.0.2@tcp"\} 1$'
has out '^ulnet_route_health\{net="tcp8",gateway="127.0.0.99@tcp"\} [0-9]+$'
has out '^ulnet_router_buffers\{kind="tiny"\} 2048$'
has out '^ulnet_router_buffers_free\{kind="small"\} 16384$'
has out '^ulnet_router_buffers_min\{kind="large"\} 1024$'
has out '^ulnet_router_buffers_waiting\{kind="large"\} 0$'

# Prometheus' text format: a metric's samples stand together behind its HELP and
# TYPE, there is none twice, and counters are called so.
format() {
	ran="the text of Prometheus"
	perl -ne '
		if (/^# HELP (\S+) \S/) {
			die "$1 again" if $seen{$1}++;
			$name = $1;
			next;
		}
		if (/^# TYPE (\S+) (counter|gauge|summary|histogram)$/) {
			die "$1, not $name" if $1 ne $name;
			$type = $2;
			die "$1 is a counter" if ($type eq "counter") !=
				($name =~ /_total$/);
			next;
		}
		/^([a-z_]+)((?:\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})?) (-?[0-9.]+)$/
			or die "what is $_";
		my ($of, $series) = ($1, "$1$2");
		die "$of in $name" if $of ne $name && !($type eq "summary" &&
			$of =~ /^${name}_(sum|count)$/) &&
			!($type eq "histogram" &&
			$of =~ /^${name}_(bucket|sum|count)$/);
		die "$series twice" if $series{$series}++;
		$n++;
		END { die "only $n" if $n < 100 }' "$dir/out" || {
		complain "$ran: not well-formed"
	}
	checks=$((checks + 1))
}
format
cp "$dir/out" "$dir/text"

# lnetctl says the same, by the same names.
ctl 0 metrics --peers 2
format
sed -n 's/^# TYPE //p' "$dir/text" >"$dir/types"
sed -ni 's/^# TYPE //p' "$dir/out"
same out <"$dir/types"
ctl 0 metrics --peers 0
expect "no peers" test "$(grep -c ^ulnet_peer_health "$dir/out")" = 0
ctl 254 --socket "$dir/nobody" metrics
has err 'No such file'

# A node with services says the same, and what RPC has counted.
lnetd_web=$web
free_port web
run 2 "$rpcserve" --poll --metrics "$web"
has err '^rpcserve: --metrics: not with --poll'
run 2 "$rpcserve" --metrics 0
has err 'rpcserve: --metrics 0: \[ADDRESS:\]PORT is expected'
start serve "$rpcserve" --net 'tcp(127.0.0.5)' --port "$port" --metrics "$web" ||
	complain "rpcserve: $(cat "$dir/serve.err")"
run 0 "$rpcping" --net 'tcp(127.0.0.6)' --port "$port" --count 100 --size 8 \
	127.0.0.5@tcp
run 0 "$rpcping" --net 'tcp(127.0.0.6)' --port "$port" --count 2 --delay 20ms \
	--method Echo 127.0.0.5@tcp
# One for a method that there is not, and one whose request cannot be read.
cat >"$dir/no.proto" <<'END'
syntax = "proto3";
service echo { rpc No(M) returns (M); rpc EchoWorker(Odd) returns (M); }
message M {}
message Odd { int32 payload = 1; }
END
run 0 protoc-c -I"$dir" --descriptor_set_out="$dir/no.set" "$dir/no.proto"
run 1 "$tools/ulrpc" --net 'tcp(127.0.0.6)' --port "$port" --deadline 60 \
	--proto "$dir/no.set" 127.0.0.5@tcp call echo.No
has err '^ulrpc: 127.0.0.5@tcp: echo.No: no method; not executed'
run 1 "$tools/ulrpc" --net 'tcp(127.0.0.6)' --port "$port" --deadline 60 \
	--proto "$dir/no.set" 127.0.0.5@tcp call echo.EchoWorker '{"payload": 1}'
has err '^ulrpc: 127.0.0.5@tcp: echo.EchoWorker: bad request'
http_until 'ulnet_rpc_server_seconds_count{service="echo",method="Raw",stage="total"}' 100
http_until 'ulnet_rpc_server_latency_seconds_count{service="echo",method="Echo",cause="ok"}' 2
# A blank in the label makes two words of the series.
http_until 'ulnet_rpc_server_refused_total{service="echo",cause="no' 'method"}'
odd='service="echo",method="EchoWorker"'
http_until "ulnet_rpc_server_ends_total{$odd,cause=\"bad" 'request"}'
format
expect "requests" test "$(value \
	'ulnet_rpc_server_calls_total{service="echo",method="Raw"}')" = 100
expect "bytes" test "$(value \
	'ulnet_rpc_server_received_bytes_total{service="echo",method="Raw"}')" = 800
expect "times" test "$(value \
	'ulnet_rpc_server_seconds_count{service="echo",method="Raw",stage="total"}')" = 100
has out '^ulnet_rpc_server_seconds_sum\{service="echo",method="Echo",stage="total"\} [0-9]+\.[0-9]*[1-9]'
has out '^ulnet_rpc_server_calls_total\{service="brw",method="Read"\} 0$'
has out '^ulnet_ni_up\{nid="127.0.0.5@tcp"'
# Histograms, ends by cause, and what is under way.
raw='service="echo",method="Raw"' latency=ulnet_rpc_server_latency_seconds
has out "^# TYPE $latency histogram\$"
has out "^# HELP $latency "
has out "^${latency}_bucket\\{$raw,cause=\"ok\",le=\"\+Inf\"\} 100\$"
has out "^${latency}_count\\{$raw,cause=\"ok\"\\} 100\$"
expect "$latency: the buckets grow" \
	awk -v p="${latency}_bucket{$raw,cause=\"ok\"," 'index($0, p) {
		bad += $2 + 0 < last + 0; last = $2; n++ } END {
		exit !(n == 26 && last == 100 && !bad) }' "$dir/out"
# Two calls took 20 ms or more: they are above 16.8 ms, and others are below.
has out "^${latency}_bucket\\{service=\"echo\",method=\"Echo\",cause=\"ok\",le=\"0.016777216\"\} 0\$"
has out "^${latency}_bucket\\{service=\"echo\",method=\"Echo\",cause=\"ok\",le=\"\+Inf\"\} 2\$"
has out "^${latency}_sum\\{service=\"echo\",method=\"Echo\",cause=\"ok\"\} [0-9]+\.[0-9]*[1-9]"
has out "^ulnet_rpc_server_ends_total\\{$raw,cause=\"ok\"\} 100\$"
has out '^ulnet_rpc_server_refused_total\{service="echo",cause="no method"\} 1$'
# What has failed has a histogram of its own; there is one for "ok" in any case.
has out "^${latency}_count\\{$odd,cause=\"ok\"\} 0\$"
has out "^${latency}_bucket\\{$odd,cause=\"bad request\",le=\"\+Inf\"\} 1\$"
has out "^${latency}_count\\{$odd,cause=\"bad request\"\} 1\$"
has out "^${latency}_sum\\{$odd,cause=\"bad request\"\} [0-9]+\.[0-9]*[1-9]"
expect "causes that have occurred" test \
	"$(grep -c "^${latency}_count{$odd," "$dir/out")" = 2
has out '^ulnet_rpc_server_under_way\{service="brw"\} 0$'
has out '^ulnet_rpc_server_waiting\{service="brw"\} 0$'
cp "$dir/out" "$dir/rpc_text"
stop_lnetd serve

# serve_by_lnetctl SOCKET: at $web.
serve_by_lnetctl() {
	start exporter "$lnetctl" --timeout 5 --socket "$1" metrics --listen "$web" ||
		complain "lnetctl metrics: $(cat "$dir/exporter.err")"
}

# Whatever node has a socket: one that is polled, and a program that calls it.
serve_by_lnetctl "$dir/serve.sock"
http GET /metrics
expect "nobody there yet" grep -q '^HTTP/1.1 503' "$dir/head"
start serve "$rpcserve" --poll --net 'tcp(127.0.0.5)' --port "$port" \
	--socket "$dir/serve.sock" || complain "rpcserve: $(cat "$dir/serve.err")"
http GET /metrics
format
has out '^ulnet_rpc_server_calls_total\{service="echo",method="Raw"\} 0$'
has out '^ulnet_ni_up\{nid="127.0.0.5@tcp"'
stop_lnetd exporter
client=(--net 'tcp(127.0.0.6)' --port "$port" --socket "$dir/ping.sock")
start_ping --time 1h --grace 60s 127.0.0.5@tcp
serve_by_lnetctl "$dir/ping.sock"
http GET /metrics
format
has out '^ulnet_rpc_client_calls_total\{service="echo",method="[A-Z][a-z]*"\} [1-9]'
has out '^ulnet_ni_up\{nid="127.0.0.6@tcp"'
# How long the calls took, as the client has seen it.
latency=ulnet_rpc_client_latency_seconds
has out "^# TYPE $latency histogram\$"
has out "^# HELP $latency "
has out "^${latency}_count\\{$raw,cause=\"ok\"\\} [1-9]"
has out "^${latency}_sum\\{$raw,cause=\"ok\"\\} [0-9]+\.[0-9]*[1-9]"
expect "$latency: the buckets grow up to the count" \
	awk -v p="${latency}_bucket{$raw,cause=\"ok\"," \
	-v c="${latency}_count{$raw,cause=\"ok\"}" 'index($0, p) {
		bad += $2 + 0 < last + 0; last = $2; n++ }
		index($0, c) { count = $2 } END {
		exit !(n == 26 && last == count && !bad) }' "$dir/out"
expect "$latency: as many as calls that have ended well" test \
	"$(value "${latency}_count{$raw,cause=\"ok\"}")" = \
	"$(value "ulnet_rpc_client_ends_total{$raw,cause=\"ok\"}")"
# Its clients are changed while they call.
ctl 0 --socket "$dir/ping.sock" rpc set --client echo
has out '^ +client: "?echo"?$'
has out '^ +clients: [1-9]'
has out '^ +sets: 0$'
has out '^ +queue_max: 1048576$'
ctl 234 --socket "$dir/ping.sock" rpc set --client echo --inflight-max 0
has err 'inflight_max: 0 is not in 1'
ctl 234 --socket "$dir/ping.sock" rpc set --client echo --reply-limit 4294967296
has err 'reply_limit: 4294967296 is not in 1'
ctl 0 --socket "$dir/ping.sock" rpc set --client echo --inflight-max 7 --queue-max 1000 \
	--reply-limit 65432
ctl 0 --socket "$dir/ping.sock" rpc set --client echo
has out '^ +inflight_max: 7$'
has out '^ +queue_max: 1000$'
has out '^ +reply_limit: 65432$'
# And what the program calls now.
ctl_until '^  Raw +[0-9.]*[1-9][0-9.]*k? +[0-9.]+[kM]? +[0-9.]+[kM]? +0 +0' \
	--socket "$dir/ping.sock" top --interval 1 --count 1
has out '^CALLED +CALLS/s IN FLIGHT +QUEUED '
has out '^echo +[0-9.]*[1-9][0-9.]*k? +[0-9]+ +[0-9]+ +[0-9.]+[kM]? +[0-9.]+'
expect "it serves nothing" test "$(grep -c ^SERVED "$dir/out")" = 0
stop_lnetd exporter INT
kill -INT "${pids[ping]}"
end_ping 0
stop_lnetd serve
web=$lnetd_web
sed -nE 's/^STAT\(([a-z_]+),.*/\1_total/p; s/^STAT_NOW\(([a-z_]+),.*/\1/p' \
	"$src/rpc/stats/stat.def" >"$dir/rpc_names"
while read -r name; do
	expect "ulnet_rpc_$name" grep -q "^ulnet_rpc_$name [0-9]" "$dir/rpc_text"
done <"$dir/rpc_names"
expect "names of RPC" test "$(wc -l <"$dir/rpc_names")" -gt 50
grep '^# TYPE ulnet_rpc_server_' "$dir/rpc_text" >"$dir/rpc_types"

# Each counter of the library is there, by the name that its page gives.
sed -nE 's/^STAT\(([a-z_]+),.*/\1/p' "$src/lnet/core/stat.def" |
	sed -E 's/_count$//; s/_length$/_bytes/; s/$/_total/' >"$dir/names"
sed -nE 's/^STAT_NOW\(([a-z_]+),.*/\1/p' "$src/lnet/core/stat.def" >>"$dir/names"
while read -r name; do
	expect "ulnet_$name" grep -q "^ulnet_$name [0-9]" "$dir/text"
done <"$dir/names"
expect "names" test "$(wc -l <"$dir/names")" -gt 50

# The dashboard uses what there is, and the page tells of all that there is.
checks=$((checks + 1))
perl -MJSON::PP -0777 -ne '
	for my $p (@{decode_json($_)->{panels}}) {
		print "$_->{expr}\n" for @{$p->{targets}};
	}' "$src/tools/grafana/ulnet.json" >"$dir/exprs" ||
	complain "ulnet.json: no JSON"
grep -oE 'ulnet_[a-z_]+' "$dir/exprs" | sort -u >"$dir/used"
expect "the dashboard has panels" test "$(wc -l <"$dir/used")" -gt 10
while read -r name; do
	expect "ulnet.json: $name" \
		grep -qE "^${name}[ {]" "$dir/text" "$dir/rpc_text"
done <"$dir/used"
sed -nE 's/^# TYPE (ulnet_(ni|route|router|peer|rpc_server)_[a-z_]+|ulnet_build_info|ulnet_objects) .*/\1/p' \
	"$dir/text" "$dir/rpc_types" |
	grep -vE '^ulnet_route_(bytes_)?total$' >"$dir/shown" # counters of the node
while read -r name; do
	expect "ulnet_metrics(7): $name" grep -qxF ".It Va $name" \
		"$src/man/man7/ulnet_metrics.7"
done <"$dir/shown"
sed -nE 's/^\.It Va (ulnet_[a-z_]+)$/\1/p' "$src/man/man7/ulnet_metrics.7" |
	sort >"$dir/page"
sort "$dir/shown" >"$dir/out"
ran="metrics of ulnet_metrics(7)"
same out <"$dir/page"

# ---- a limit that is told ----

need_lnetd c --net 'tcp(127.0.0.3)' --port "$port" --socket "$dir/c.sock"
need_lnetd d --net 'tcp(127.0.0.4)' --port "$port" --socket "$dir/d.sock"
ctl 0 ping --timeout 60 127.0.0.3@tcp
ctl 0 ping --timeout 60 127.0.0.4@tcp
for ((tries = 0; tries < 600; tries++)); do # an answer may be a second old
	http GET /metrics
	[ "$(value ulnet_peer_nis)" -lt 3 ] || break
	sleep 0.1
done
has out '^ulnet_peer_nis [3-9]'
expect "those over the limit" test "$(value ulnet_peer_nis_hidden)" = \
	$(($(value ulnet_peer_nis) - 2))
expect "those within" test "$(grep -c ^ulnet_peer_health "$dir/out")" = 2
format

# ---- other requests ----

http HEAD /metrics
expect "HEAD" grep -q '^HTTP/1.1 200' "$dir/head"
silent out
http GET /
expect "another path" grep -q '^HTTP/1.1 404' "$dir/head"
has out '^try /metrics$'
http POST /metrics
expect "POST" grep -q '^HTTP/1.1 405' "$dir/head"
run 1 "$lnetd" --foreground --socket "$dir/e.sock" --metrics "$web"
has err "metrics at $web: Address already in use"

# ---- those who only connect, or do not read ----

# 2,000 connections: a third silent, a third in the middle of their request, a
# third that have asked a hundred times, and read nothing.
perl -MIO::Socket::INET -e '
	my @all;
	$SIG{PIPE} = "IGNORE";
	for my $i (1 .. 2000) {
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
			PeerPort => $ARGV[0], Blocking => 0) or next;
		push @all, $s;
		select undef, undef, undef, 0.001;
		syswrite $s, "GET /metrics HT" if $i % 3 == 1;
		syswrite $s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" x 100
			if $i % 3 == 2;
	}
	print "there\n";
	close STDOUT;
	<STDIN>;' "$web" >"$dir/crowd.out" < <(
	while [ ! -e "$dir/go" ]; do sleep 0.1; done) &
pids[crowd]=$!
await "$dir/crowd.out" there
for ((i = 0; i < 20; i++)); do
	ctl 0 ping --timeout 60 127.0.0.2@tcp
	ctl 0 net show
done
http GET /metrics # which the crowd does not keep waiting
has out '^ulnet_send_total'
files=$(find "/proc/${pids[a]}/fd" | wc -l)
expect "$files files are open" test "$files" -lt 200
touch "$dir/go"
wait "${pids[crowd]}"
unset 'pids[crowd]'
http GET /metrics # those who are gone do not stand in the way
has out '^ulnet_send_total'
format

# It ends although somebody is connected and silent.
exec 7<>"/dev/tcp/127.0.0.1/$web"
stop_lnetd a
exec 7>&-
finish
