#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Rules that say who may call what: from a file, and changed while the service
# runs (requirements G12, I1).
. "${srcdir:-.}/tests/tools/proven.sh" || exit

export ULNET_SOCKET=$dir/socket

ping() { # STATUS NAME [ARGUMENT...]
	run "$1" timeout 100 "$rpcping" "${client[@]}" --keys "$keys" \
		--as "$2" "${@:3}" $server
}

file() { # NAME: stdin
	cat >"$dir/$1"
}

for name in "authority site" "node alice" "node bob" "node carol" "node server"; do
	# shellcheck disable=SC2086 # two words
	run 0 "$ulnet_keys" -d "$keys" $name
done
file two.conf <<-END
	rpc:
	    groups:
	        - name: people
	          names: [alice, "b*b"]
	    rules:
	        - services: echo
	          groups: people
END
need_rpcserve server --net 'tcp(127.0.0.2)' --port "$port" --service echo \
	--keys "$keys" --as server --socket "$ULNET_SOCKET" --config "$dir/two.conf"

# Two names may, and nobody else: at once, and with a reason.
ping 0 alice
ping 0 bob
ping 1 carol
has err 'method Raw of service echo is not for carol'
has err 'no rule allows it'
await "$dir/server.err" 'a call is refused: method Raw of .* carol'
ctl 0 rpc show
has out 'requests_unnamed: [1-9]'
run 0 "$lnetctl" metrics
has out '^ulnet_rpc_requests_unnamed_total [1-9]'

# Who is connected, and how.
client=("${client[@]:0:6}" --keys "$keys" --as alice)
start_ping --time 1h --grace 60s "$server"
ctl 0 rpc show --connections
has out '^ +- +peer: ".*-127.0.0.1@tcp"$'
has out '^ +name: "alice"$'
has out '^ +kind: certificate$'
has out '^ +issuer: "site"$'
has out '^ +valid_until: 20[0-9]{2}-[01][0-9]-[0-3][0-9]T.*Z$'
has out '^ +flavour: auth$'
has out '^ +cipher: (AES-128-GCM|ChaCha20-Poly1305)$'
has out '^ +connected_s: [0-9]+$'
has out '^ +refused: 0$'
kill -INT "${pids[ping]}"
end_ping 0
client=("${client[@]:0:6}" --count 10)

# They are shown in the form in which they can be set.
ctl 0 rpc rules
has out 'name: "people"'
cp "$dir/out" "$dir/shown"
ctl 0 rpc rules "$dir/shown"
ctl 0 rpc rules
expect "the same rules" cmp "$dir/out" "$dir/shown"

# Changed while the service runs.
file three.conf <<-END
	rpc:
	    rules:
	        names: [carol]
END
ctl 0 rpc rules "$dir/three.conf"
ping 0 carol
ping 1 alice
has err 'not for alice'
ctl 0 import "$dir/two.conf"
ping 0 alice
ping 1 carol

# A mistake names the item and its line, and the rules stay.
wrong() { # WORDS: stdin
	file wrong.conf
	ctl "${status:-234}" rpc rules "$dir/wrong.conf"
	has err "$1"
	ctl "${status:-234}" import "$dir/wrong.conf"
	has err "$1"
}
wrong 'line 3: rules: unknown key .nams.: .names. may be meant' <<-END
	rpc:
	    rules:
	        - nams: carol
END
wrong 'line 4: rule 2: names: .car ol.' <<-END
	rpc:
	    rules:
	        - names: alice
	        - names: "car ol"
END
wrong 'line 3: rules: names: a value is expected' <<-END
	rpc:
	    rules:
	        - names:
END
wrong 'line 3: rule 1: names: the list is empty' <<-END
	rpc:
	    rules:
	        - names: []
END
wrong 'line 3: flavour: .secret.: one of these is expected: none, auth' <<-END
	rpc:
	    rules:
	        - flavour: secret
END
wrong 'line 3: rule 1: nids: .10.0.0.999@tcp., at character' <<-END
	rpc:
	    rules:
	        - nids: 10.0.0.999@tcp
END
wrong 'line 1: rpc: rules is missing' <<-END
	rpc: {}
END
status=254 wrong 'line 3: rule 1: groups: there is no group .peple.' <<-END
	rpc:
	    rules:
	        - groups: peple
END
# A section that is misspelt does not mean that there are no rules.
file wrong.conf <<-END
	rcp:
	    rules:
	        - names: alice
END
run 1 timeout 100 "$rpcserve" --net 'tcp(127.0.0.3)' --port "$port" \
	--service echo --keys "$keys" --as server --socket "$dir/other" \
	--config "$dir/wrong.conf"
has err "unknown key 'rcp'"
file wrong.conf <<-END
	global:
	    discovery: 0
	rpc:
	    rules:
	        - name: carol
END
ctl 234 import "$dir/wrong.conf"
ctl 0 global show
has out 'discovery: 1'
ctl 0 rpc rules --check "$dir/three.conf"
ping 0 alice
ping 1 carol

# Nobody may, and then all may.
echo 'rpc: {rules: []}' >"$dir/none.conf"
ctl 0 rpc rules "$dir/none.conf"
ping 1 alice
ctl 0 rpc rules --clear
ctl 0 rpc rules
has out '^rpc: [{][}]'
ping 0 carol
stop_lnetd server

# A program does not begin with rules that have a mistake.
expect "no service with a mistake" eval \
	"! start server '$rpcserve' --net 'tcp(127.0.0.2)' --port $port \
		--config '$dir/wrong.conf'"
await "$dir/server.err" 'wrong.conf: line 5: rules: unknown key'
# A node without RPC passes them over.
need_lnetd node --socket "$ULNET_SOCKET" --config "$dir/two.conf"
await "$dir/node.err" 'rpc is passed over: this node runs no RPC'
stop_lnetd node
finish
