#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ulrpc: what services there are, how they are, what they take, and calls of them
# in JSON (requirement J5).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
ulrpc=$PWD/tools/bin/ulrpc server=127.0.0.2@tcp
source=${srcdir:-.}
u() { # STATUS ARGUMENT...
	run "$1" timeout 100 "$ulrpc" --port "$port" --net 'tcp(127.0.0.1)' \
		--deadline 60 "${@:2}"
}

# ---- without a server ----

run 2 "$ulrpc" $server
run 2 "$ulrpc" $server lst
has err "^ulrpc: 'lst': .*Did you mean 'list'\?$"
run 2 "$ulrpc" $server describe
has err '^ulrpc: describe: too few words'
run 2 "$ulrpc" $server list a b
has err '^ulrpc: list: too many words'
run 2 "$ulrpc" --type x $server list
has err '^ulrpc: --type: --proto is missing'
run 2 "$ulrpc" --server x $server list
has err '^ulrpc: --server x: --keys is missing'
u 1 no-such-host.invalid list
has err '^ulrpc: no-such-host.invalid: '

# ---- a server that tells nothing ----

need_rpcserve quiet --net 'tcp(127.0.0.2)' --port "$port" --service echo
u 1 $server list
has err "^ulrpc: $server: it does not tell what services it has: see "
u 1 $server call echo.Echo '{}'
has err 'it does not tell'
# With a .proto, that is not needed. protoc reads it, or has done so before.
run 0 protoc-c --version
if type protoc >/dev/null 2>&1; then
	u 0 --proto "$source/services/echo/echo.proto" --type ulrpc.echo.Echo \
		$server call echo.Echo '{"payload": "aGVsbG8="}'
	has out '"payload": "aGVsbG8="'
	echo 'nonsense' >"$dir/bad.proto"
	u 1 --proto "$dir/bad.proto" $server call echo.Echo
	has err "^ulrpc: $dir/bad.proto: protoc cannot read it"
fi
run 0 protoc-c -I"$source" -I"$source/include" --include_imports \
	--descriptor_set_out="$dir/brw.set" "$source/services/brw/brw.proto"
run 0 protoc-c -I"$source" --include_imports \
	--descriptor_set_out="$dir/echo.set" "$source/services/echo/echo.proto"
u 0 --proto "$dir/echo.set" --type ulrpc.echo.Echo $server call echo/Echo \
	'{"payload": "aGVsbG8="}'
has out '"payload": "aGVsbG8="'
u 0 --proto "$dir/echo.set" $server describe ulrpc.echo.Echo
cp "$dir/out" "$dir/echo.described"
u 1 --proto "$dir/echo.set" $server describe ulrpc.echo.Eho
has err "^ulrpc: there is no service 'ulrpc.echo.Eho'. Did you mean 'ulrpc.echo.Echo'\?$"
u 1 --proto "$dir/nothing.set" $server describe x
has err "^ulrpc: $dir/nothing.set: No such file"
echo '{}' >"$dir/not.set"
u 1 --proto "$dir/not.set" $server describe x
has err "^ulrpc: $dir/not.set: neither a .proto nor what"
stop_lnetd quiet

# ---- one that tells ----

need_rpcserve server --net 'tcp(127.0.0.2)' --port "$port" --about
expect "$ready" grep -q ', ulrpc.About (portal [0-9]*)' <<<"$ready"
u 0 $server list
same out <<-END
	echo
	  Raw
	  RawWorker
	  Echo
	  EchoWorker
	brw
	  Read
	  Write
	  ReadVerified
	  WriteVerified
	ulrpc.About
	  Health
	  Services
	  Describe
END
u 0 $server list ulrpc.About
same out <<-END
	ulrpc.About
	  Health
	  Services
	  Describe
END
u 1 $server list eco
has err "^ulrpc: $server: there is no service 'eco'. Did you mean 'echo'\?$"

u 0 $server health
same out <<-END
	echo: SERVING
	brw: SERVING
	ulrpc.About: SERVING
END
u 0 $server health echo
same out <<<SERVING
u 1 $server health eco
same out <<<UNKNOWN
has err "there is no service 'eco'. Did you mean 'echo'\?$"

# What the server tells is what protoc says.
u 0 $server describe echo
same out <"$dir/echo.described"
u 0 --proto "$dir/brw.set" $server describe ulrpc.brw.Brw
cp "$dir/out" "$dir/brw.described"
u 0 $server describe brw
same out <"$dir/brw.described"
u 0 $server describe echo.EchoWorker
lacks out 'rpc Echo\('
has out 'rpc EchoWorker\('
u 1 $server describe echo.EchoWorkr
has err "has no method 'EchoWorkr'. Did you mean 'EchoWorker'\?$"

# Calls: the argument, a file, stdin, or nothing.
u 0 $server call echo.Echo '{"payload": "aGVsbG8="}'
same out <<-END
	{
	  "payload": "aGVsbG8="
	}
END
echo '{"payload": "AAECAw", "delay": "1000", "progress": 2}' >"$dir/json"
u 0 $server call echo.EchoWorker "@$dir/json"
has out '"payload": "AAECAw=="'
checks=$((checks + 1))
timeout 100 "$ulrpc" --port "$port" --net 'tcp(127.0.0.1)' --deadline 60 \
	$server call echo.Echo - <"$dir/json" >"$dir/out" ||
	complain "JSON from stdin"
has out '"payload": "AAECAw=="'
u 0 $server call echo.Echo
same out <<<'{}'
u 0 --defaults $server call echo.Echo
has out '"payload": ""'
u 0 $server call ulrpc.About.Services
has out '"health": "SERVING"'
# One that is longer than one message.
{
	printf '{"payload": "'
	head -c 600000 /dev/zero | tr '\0' A
	echo '"}'
} >"$dir/json"
u 0 $server call echo.Echo "@$dir/json"
expect "a long reply" [ "$(wc -c <"$dir/out")" -gt 600000 ]
# json_of N: a message with 3 bytes for each 4 of N.
json_of() {
	printf '{"payload": "'
	head -c "$1" /dev/zero | tr '\0' A
	echo '"}'
}
# Ones that no message has room for, both ways.
json_of 1400000 >"$dir/json"
u 0 $server call echo.Echo "@$dir/json"
expect "a reply in pieces" [ "$(wc -c <"$dir/out")" -gt 1400000 ]
json_of 20000000 >"$dir/json"
u 0 $server call echo.EchoWorker - <"$dir/json"
expect "a reply in many pieces" [ "$(wc -c <"$dir/out")" -gt 20000000 ]
# One that is longer than ulrpc takes, and one that is longer than the service
# takes: both sizes are named.
u 1 --reply-limit 14M $server call echo.Echo "@$dir/json"
has err 'the reply has 15000005 bytes, and the caller takes up to 14680064'
json_of 24000000 >"$dir/json"
u 1 $server call echo.Echo "@$dir/json"
has err 'a request of 18000005 bytes is too long: the service takes up to 16777216'
run 2 "$ulrpc" --reply-limit 0 $server call echo.Echo
has err 'reply-limit'

# The work grows with fields and values together, not with the one times the
# other: instructions are counted, as often as valgrind is there. The reply's
# bytes are taken for a message.
if type valgrind >/dev/null 2>&1; then
	perl -e '
		print qq{syntax = "proto3"; message Bytes { bytes payload = 1; }\n};
		print "message Many {\n";
		print "uint32 f$_ = $_;\n" for 1 .. 3000;
		print "}\nmessage Reply { Many payload = 1; }\n";
		print "service Echo { rpc Echo(Bytes) returns (Reply); }\n";
	' >"$dir/many.proto"
	run 0 protoc-c -I"$dir" --descriptor_set_out="$dir/many.set" \
		"$dir/many.proto"
	perl -MMIME::Base64 -e '
		my $b = "";
		for my $i (1 .. 15000) {
			my $n = ($i - 1) % 3000 + 1;
			$b .= varint($n << 3) . varint($i);
		}
		sub varint {
			my ($v, $s) = (shift, "");
			while ($v > 127) {
				$s .= chr($v & 127 | 128);
				$v >>= 7;
			}
			return $s . chr($v);
		}
		print "{\"payload\": \"", encode_base64($b, ""), "\"}";
	' >"$dir/json"
	run 0 timeout 300 valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null --log-file="$dir/work" \
		"$ulrpc" --port "$port" --net 'tcp(127.0.0.1)' --deadline 60 \
		--proto "$dir/many.set" --type Echo $server call echo.Echo \
		"@$dir/json"
	has out '"f3000": 15000'
	work=$(sed -n 's/.*Collected : //p' "$dir/work")
	expect "$work instructions" [ "${work:-999999999}" -lt 400000000 ]
fi

# Whatever is wrong is named.
u 1 $server call echo.Echo '{"paylod": ""}'
has err "^ulrpc: message ulrpc.echo.EchoRequest has no field 'paylod'. Did you mean 'payload'\?$"
u 1 $server call echo.Echo '{"delay": -1}'
has err "^ulrpc: delay: '-1' is no integer of 64 bits without sign$"
u 1 $server call echo.Echo '{"delay": 1'
has err "^ulrpc: line 1, column 12: ',' or '}' is expected$"
u 1 $server call echo.Raw '{}'
has err "^ulrpc: service ulrpc.echo.Echo has no method 'Raw'"
u 2 $server call echo
has err '^ulrpc: call echo: SERVICE.METHOD is expected$'
u 1 $server call ech.Echo
has err "there is no service 'ech'. Did you mean 'echo'\?$"
u 1 $server call brw.Read '{"bulk": {}}'
has err '^ulrpc: bulk: memory that the service'
u 1 $server call ulrpc.About.Describe '{"service": "nothing"}'
has err "the service says NOT_FOUND \(.*\): there is no service 'nothing'$"
u 1 $server call echo.Echo "@$dir/nothing"
has err "^ulrpc: $dir/nothing: No such file"

stop_lnetd server

# ---- streams ----

# ulrpc_ended STATUS: ulrpc, which runs in the background, has ended so.
ulrpc_ended() {
	local status=0

	wait "${pids[client]}" || status=$?
	unset "pids[client]"
	expect "ulrpc ended with $status, not $1: $(cat "$dir/client.err")" \
		[ $status = "$1" ]
}
if [ -x tests/tools/trial ]; then
	start trial tests/tools/trial 127.0.0.2@tcp "$port" ||
		complain "no server: $(cat "$dir/trial.err")"
	u 0 $server describe interop.Trial.Talk
	has out 'rpc Talk\(stream interop.Order\) returns \(stream interop.Parcel\);'
	# What a service says of its failures may be anything.
	said='\u001b[2J\r\n\u0007\u009b31m\u263a' shown='\?\[2J\?\?\?\?\?31m☺'
	for method in Swap Talk; do
		u 1 $server call interop.Trial.$method \
			"{\"status\": 5, \"text\": \"$said\"}"
		has err "^ulrpc: $server: interop.Trial.$method: the service says .*: $shown\$"
	done
	start hostile tests/tools/trial 127.0.0.3@tcp "$port" \
		$'\e[2J\r\n\a\xc2\x9b31m☺' ||
		complain "no server: $(cat "$dir/hostile.err")"
	for format in '' --json; do
		run 1 timeout 100 "$rpcping" --port "$port" --net 'tcp(127.0.0.1)' --deadline 60 \
			--service interop.Trial --method Rest --size 0 --count 1 $format 127.0.0.3@tcp
		has err "\($shown\); "
		lacks out $'[\e\a\r]'
	done
	kill -KILL "${pids[hostile]}"
	wait "${pids[hostile]}" 2>/dev/null
	unset "pids[hostile]"
	# From the service.
	u 0 $server call interop.Trial.Cut '{"size": [1, 0, 3]}'
	same out <<-END
		{
		  "payload": "AA=="
		}
		{}
		{
		  "payload": "AAAA"
		}
	END
	u 0 $server call interop.Trial.Cut
	same out </dev/null
	# From the client: the argument, a file, nothing; more than its window.
	u 0 $server call interop.Trial.Add '{"payload": "AAAA"} {}{"payload":"AA=="}'
	has out '"bytes": "4"'
	for i in {1..300}; do
		printf '{"payload": "AAEC"}\n\n'
	done >"$dir/json"
	u 0 $server call interop.Trial.Add "@$dir/json"
	has out '"bytes": "900"'
	u 0 $server call interop.Trial.Add
	same out <<<'{}'
	# Brackets and quotes in strings end no object.
	u 0 $server call interop.Trial.Talk \
		'{"text": "}\"{", "size": 1}{"text": "\\"}'
	expect "two answers" [ "$(grep -c '^}$\|^{}$' "$dir/out")" = 2 ]
	# How the service ends it.
	u 1 $server call interop.Trial.Talk \
		'{"size": 1} {"status": 13, "text": "no \u0007more"} {"size": 1}'
	has err 'interop.Trial.Talk: the service says PERMISSION_DENIED .*: no \?more$'
	has out AA==
	# What is wrong.
	u 1 $server call interop.Trial.Talk '{"size": 1} {"sze": 1}'
	has err "message interop.Order has no field 'sze'. Did you mean 'size'\?$"
	has err '^ulrpc: messages sent before that: 1$'
	printf '{"size": 1} {"payload": "%s"}' \
		"$(head -c 65533 /dev/zero | base64 -w 0)" >"$dir/json"
	u 1 $server call interop.Trial.Talk "@$dir/json"
	has err '^ulrpc: message 2 has 65537 bytes, and the stream takes up to 65536$'
	u 1 $server call interop.Trial.Talk '{"size": 1'
	has err "^ulrpc: line 1, column 11: ',' or '}' is expected$"
	u 1 $server call interop.Trial.Talk '[{}]'
	has err "'{' is expected$"
	u 1 $server call interop.Trial.Cut '{} {}'
	has err 'there is more behind the value$'
	u 1 $server call interop.Trial.Add "@$dir/nothing"
	has err "^ulrpc: $dir/nothing: No such file"

	# Both ways: each answer comes before the next message is sent.
	mkfifo "$dir/in" "$dir/answers"
	timeout 100 "$ulrpc" --port "$port" --net 'tcp(127.0.0.1)' \
		$server call interop.Trial.Talk - <"$dir/in" >"$dir/answers" \
		2>"$dir/client.err" &
	pids[client]=$!
	exec 3>"$dir/in" 4<"$dir/answers"
	for i in 1 2; do
		printf '{"size":' >&3
		echo ' 2}' >&3
		for line in '{' '  "payload": "AAA="' '}'; do
			IFS= read -r got <&4
			expect "line '$got', not '$line'" [ "$got" = "$line" ]
		done
	done
	exec 3>&-
	ulrpc_ended 0
	exec 4<&-
	# Ctrl-C cancels; the service hears of it.
	timeout --foreground 100 "$ulrpc" --port "$port" --net 'tcp(127.0.0.1)' \
		$server call interop.Trial.Talk - <"$dir/in" >"$dir/answers" \
		2>"$dir/client.err" &
	pids[client]=$!
	exec 3>"$dir/in" 4<"$dir/answers"
	echo '{}' >&3
	read -r got <&4
	expect "the answer '$got'" [ "$got" = '{}' ]
	kill -INT "${pids[client]}"
	ulrpc_ended 1
	exec 3>&- 4<&-
	expect "$(cat "$dir/client.err")" grep -q 'Talk: canceled' "$dir/client.err"
	expect "the service has not heard of it" timeout 60 sh -c "
		until grep -q 'talk: canceled' '$dir/trial.err'; do
			sleep 0.02
		done"
	kill -KILL "${pids[trial]}"
	wait "${pids[trial]}" 2>/dev/null
	unset "pids[trial]"
fi

# Nobody there any more.
run 1 timeout 100 "$ulrpc" --port "$port" --net 'tcp(127.0.0.1)' \
	--deadline 0.5 $server health
has err "^ulrpc: $server: ulrpc.About: "
finish
