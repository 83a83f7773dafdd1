#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Users who prove by MUNGE who they are: a munged of this test's own, a service that
# takes them, and rules that name them (requirements G12, I1).
. "${srcdir:-.}/tests/tools/proven.sh" || exit

munged=$(PATH=$PATH:/usr/sbin command -v munged) || skip "there is no munged (Debian: munge)"
[ "$(id -u)" = 0 ] || skip "only root can be several users"
command -v setpriv >/dev/null || skip "there is no setpriv"
user=$dir/user
export ULNET_SOCKET=$dir/socket

# munged's socket and the authority are for everybody.
chmod 711 "$dir"
mkdir -m 700 "$dir/munge" "$dir/other"
mkdir -m 755 "$dir/run" "$user"
dd if=/dev/urandom of="$dir/munge/key" bs=64 count=1 2>/dev/null
chmod 600 "$dir/munge/key"
socket=$dir/run/socket

# start_munged NAME SOCKET [KEY]: until it listens.
start_munged() {
	"$munged" --foreground --socket "$2" --key-file "${3:-$dir/munge/key}" \
		--pid-file "$dir/munge/$1.pid" --seed-file "$dir/munge/$1.seed" \
		--log-file "$dir/munge/$1.log" >"$dir/$1.err" 2>&1 &
	pids[$1]=$!
	for _ in {1..600}; do
		munge -n --socket "$2" >/dev/null 2>&1 && return
		kill -0 "${pids[$1]}" 2>/dev/null || break
		sleep 0.1 # until munged has made its socket, for which nobody waits
	done
	cat "$dir/$1.err"
	return 1
}

stop_munged() {
	kill "${pids[$1]}"
	wait "${pids[$1]}"
	unset "pids[$1]"
}

run 0 "$ulnet_keys" -d "$keys" authority site
run 0 "$ulnet_keys" -d "$keys" node server
run 0 "$ulnet_keys" -d "$keys" node root
run 0 "$ulnet_keys" -d "$keys" node somebody
cp "$keys/authority.crt" "$keys/revoked.crl" "$user"
chmod 644 "$user"/*
timeout 100 "$rpcping" "${client[@]}" --deadline 0.1 --keys "$user" --munge $server \
	2>&1 | grep -q 'built without MUNGE' && skip "built without MUNGE"
start_munged munged "$socket" || skip "munged cannot be started here"

serve() { # ARGUMENT...
	need_rpcserve server --net 'tcp(127.0.0.2)' --port "$port" --log info \
		--service echo --keys "$keys" --as server --socket "$ULNET_SOCKET" "$@"
}

as() { # UID GID COMMAND...
	setpriv --reuid="$1" --regid="$2" --clear-groups "${@:3}"
}

ping() { # STATUS UID GID [ARGUMENT...]
	run "$1" timeout 100 setpriv --reuid="$2" --regid="$3" --clear-groups \
		"$rpcping" "${client[@]}" --keys "$user" --munge \
		--munge-socket "${mine:-$socket}" "${@:4}" $server
}

rules() { # stdin
	cat >"$dir/rules"
	ctl 0 rpc rules "$dir/rules"
}

as 12345 54321 "$rpcping" --help >/dev/null 2>&1 ||
	skip "another user cannot run the programs here"

# Users have no keys of their own, and are known by number or by name.
serve --munge --munge-socket "$socket"
ping 0 0 0
ping 0 12345 54321
ping 0 12345 54321 --flavour privacy --server server
ping 1 12345 54321 --server other
has err 'server'
rules <<-END
	rpc:
	    rules:
	        - services: echo
	          kind: munge
	          names: "uid=12345"
END
ctl 0 rpc rules
has out 'kind: munge'
ping 0 12345 54321
ping 1 12346 54321
has err 'is not for uid=12346 [(]MUNGE: uid 12346, group gid=54321[)]'
ping 1 0 0
has err 'is not for user=root'
rules <<-END
	rpc:
	    groups:
	        - name: people
	          names: ["user=root", "gid=54321"]
	    rules:
	        - services: echo
	          kind: munge
	          groups: people
END
ping 0 0 0
ping 0 12346 54321
ping 1 12346 54322
has err 'no rule allows it'
# Somebody with the name of a certificate is not taken for its owner, nor the other
# way round.
rules <<-END
	rpc:
	    rules:
	        - services: echo
	          names: [root, "user=*", "uid=*"]
END
ping 1 0 0
has err 'no rule allows it'
ping 1 12345 54321
run 0 timeout 100 "$rpcping" "${client[@]}" --keys "$keys" --as root $server
run 1 timeout 100 "$rpcping" "${client[@]}" --keys "$keys" --as somebody $server
rules <<-END
	rpc:
	    rules:
	        - services: echo
	          kind: munge
	          names: [user=root]
END
ping 0 0 0
run 1 timeout 100 "$rpcping" "${client[@]}" --keys "$keys" --as root $server
has err 'no rule allows it'
rules <<-END
	rpc:
	    rules:
	        - services: echo
	          kind: munge
END

# Who is connected.
client=("${client[@]:0:6}" --keys "$user" --munge --munge-socket "$socket")
start_ping --time 1h --grace 60s "$server"
ctl 0 rpc show --connections
has out '^ +name: "user=root"$'
has out '^ +kind: munge$'
has out '^ +uid: 0$'
has out '^ +group: "root"$'
kill -INT "${pids[ping]}"
end_ping 0
client=("${client[@]:0:6}" --count 10)

# A credential is read once, whoever reads it.
run 0 tests/tools/munge_twice "$socket"
has out '^made: good'
has out '^read 1: good root$'
has out '^read 2: MUNGE: Replayed credential'

# The groups of a user count, whichever of them its process has.
run 0 setpriv --regid 1 --clear-groups tests/tools/munge_twice "$socket"
has out '^groups: 0$'

# A credential of another cluster's munged is nothing.
dd if=/dev/urandom of="$dir/other/key" bs=64 count=1 2>/dev/null
chmod 600 "$dir/other/key"
start_munged foreign "$dir/run/foreign" "$dir/other/key"
mine=$dir/run/foreign ping 1 12345 54321
has err 'does not believe the user: MUNGE: Invalid credential'
await "$dir/server.err" 'refused: MUNGE: Invalid credential'
stop_munged foreign

# Without its munged a client is told so, and not at its deadline.
ping 0 12345 54321
stop_munged munged
begun=$SECONDS
ping 1 12345 54321 --deadline 600
has err "refused .*MUNGE: no answer from munged at $socket"
start_munged munged "$socket"
ping 0 12345 54321

# Nor if it is the server whose munged is gone; the log says where it should be.
stop_lnetd server
serve --munge --munge-socket "$dir/run/gone"
ping 1 12345 54321 --deadline 600
has err 'does not believe the user: its munged does not answer'
lacks err 'run/gone'
await "$dir/server.err" "refused: MUNGE: no answer from munged at $dir/run/gone"
start_munged late "$dir/run/gone"
ping 0 12345 54321
checks=$((checks + 1))
[ $((SECONDS - begun)) -lt 600 ] || complain "a deadline has passed"
stop_munged late

# Only who asks for it believes users.
stop_lnetd server
serve
ping 1 12345 54321
has err 'refused .*the peer does not take MUNGE'
stop_lnetd server

# A cluster's key in place of an authority.
run 0 "$ulnet_keys" -d "$dir/lab" cluster lab
need_rpcserve server --net 'tcp(127.0.0.2)' --port "$port" --service echo \
	--keys "$dir/lab" --munge --munge-socket "$socket" --socket "$ULNET_SOCKET"
rules <<-END
	rpc:
	    rules:
	        - services: echo
	          kind: munge
	          names: user=root
END
run 0 timeout 100 "$rpcping" "${client[@]}" --keys "$dir/lab" --munge \
	--munge-socket "$socket" $server
run 1 timeout 100 "$rpcping" "${client[@]}" --keys "$dir/lab" $server
has err 'is not for lab [(]cluster.s key[)]'

# Mistakes.
run 2 "$rpcping" --munge $server
has err 'munge: --keys is missing'
run 2 "$rpcping" --keys "$keys" --as root --munge $server
has err 'as root: with --munge'
run 2 "$rpcping" --keys "$keys" --munge-socket "$socket" $server
has err 'munge is missing'
finish
