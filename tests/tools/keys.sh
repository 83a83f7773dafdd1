#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A service that only those may call who prove that they belong to the site, from
# nothing: ulnet-keys, rpcserve and rpcping (requirements G12, I1).
. "${srcdir:-.}/tests/tools/proven.sh" || exit


ping() { # STATUS ARGUMENT...
	run "$1" timeout 100 "$rpcping" "${client[@]}" "${@:2}" $server
}

make_keys() {
	run 0 "$ulnet_keys" -d "$1" "${@:2}"
}

serve() { # ARGUMENT...
	need_rpcserve server --net 'tcp(127.0.0.2)' --port "$port" \
		--service echo "$@"
}

make_keys "$keys" authority site
make_keys "$keys" node a
make_keys "$keys" node b
make_keys "$dir/other" authority site
make_keys "$dir/other" node a
serve --keys "$keys" --as b

# Who belongs to the site may, and nobody else: at once, and with a reason.
ping 0 --keys "$keys" --as a
ping 1
has err 'flavour auth'
ping 1 --keys "$dir/other" --as a
has err 'not believed'
# The other side can be told who it has to be.
ping 0 --keys "$keys" --as a --server b
ping 0 --keys "$keys" --as a --server '[bc]'
ping 1 --keys "$keys" --as a --server c
has err 'server'
# The higher of what the two want is used.
ping 0 --keys "$keys" --as a --flavour privacy --size 100K
stop_lnetd server
serve --keys "$keys" --as b --flavour privacy
ping 0 --keys "$keys" --as a
ping 0 --keys "$keys" --as a --flavour integrity --size 5K
ping 1
has err 'flavour privacy'
ping 1 --keys "$keys" --as a --flavour none
has err 'flavour privacy'
# Nor is a certificate that its own key has signed believed, by whatever name, also
# if its owner believes the server.
mkdir -m 700 "$dir/self"
run 0 openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
	-subj /CN=a \
	-keyout "$dir/self/a.key" -out "$dir/self/a.crt"
chmod 600 "$dir/self/a.key"
cat "$keys/authority.crt" "$dir/self/a.crt" >"$dir/self/authority.crt"
ping 1 --keys "$dir/self" --as a
has err 'refused [(]the peer .*(authority|certificate)'
await "$dir/server.err" 'refused: .*self-signed certificate'
stop_lnetd server
serve --keys "$keys" --as b --flavour privacy --service brw
ping 0 --keys "$keys" --as a --bulk-write 1M --verify
ping 0 --keys "$keys" --as a --bulk-read 300K --verify
# Nor does who belongs call a server that proves nothing.
stop_lnetd server
serve
ping 1 --keys "$keys" --as a
has err 'refuses the handshake'
ping 0
stop_lnetd server

# Who was revoked is out.
run 0 "$ulnet_keys" -d "$keys" revoke a
serve --keys "$keys" --as b
ping 1 --keys "$keys" --as a
has err 'revoked'
stop_lnetd server

# A cluster's key.
run 0 "$ulnet_keys" -d "$keys" cluster lab
serve --keys "$keys"
ping 0 --keys "$keys"
ping 1
stop_lnetd server

# Old and new keys of a cluster are both good during a change, and then only the
# new one. The server runs on.
export ULNET_SOCKET=$dir/socket
serve --keys "$keys" --socket "$ULNET_SOCKET" --log info
cp -r "$keys" "$dir/old"
run 0 "$ulnet_keys" -d "$dir/next" cluster next
cat "$dir/next/cluster.key" >>"$keys/cluster.key"
ctl 0 reload
ping 0 --keys "$dir/next"
ping 0 --keys "$dir/old"
cp "$dir/next/cluster.key" "$keys/cluster.key"
kill -HUP "${pids[server]}"
await "$dir/server.err" 'SIGHUP: the keys are read again'
ping 0 --keys "$dir/next"
ping 1 --keys "$dir/old"
# What cannot be read is named, and the keys of before stay.
chmod 644 "$keys/cluster.key"
ctl 243 reload
has err 'keys/cluster.key: others may read'
kill -HUP "${pids[server]}"
await "$dir/server.err" 'SIGHUP: .*keys/cluster.key: others may read.*stay'
ping 0 --keys "$dir/next"
chmod 600 "$keys/cluster.key"
stop_lnetd server
serve --socket "$ULNET_SOCKET"
ctl 130 reload
has err 'keys was not given'
stop_lnetd server

# Who was revoked is out after a reload.
cp -r "$keys" "$dir/more"
run 0 "$ulnet_keys" -d "$dir/more" node c
serve --keys "$dir/more" --as b --socket "$ULNET_SOCKET"
ping 0 --keys "$dir/more" --as c
run 0 "$ulnet_keys" -d "$dir/more" revoke c
ctl 0 reload
ping 1 --keys "$dir/more" --as c
has err 'revoked'
# Without the list, as while it is being replaced, she does not get in either.
mv "$dir/more/revoked.crl" "$dir/revoked.crl"
ctl 254 reload
has err 'more/revoked.crl: No such file'
ping 1 --keys "$dir/more" --as c
has err 'revoked'
mv "$dir/revoked.crl" "$dir/more/revoked.crl"
ctl 0 reload
ping 1 --keys "$dir/more" --as c
has err 'revoked'
stop_lnetd server

# Nobody is there, or, which looks the same, a server that knows no handshakes.
run 1 timeout 100 "$rpcping" "${client[@]}" --keys "$keys" --as b --deadline 0.5 \
	--count 1 127.0.0.9@tcp
has err 'is it of a release that knows no keys'

# Mistakes.
ping 2 --flavour auth
has err 'keys is missing'
ping 2 --keys "$keys" --flavour secret
ping 2 --as a
has err 'keys is missing'
ping 1 --keys "$dir/nowhere"
has err 'nowhere/cluster.key'
ping 1 --keys "$keys" --as bb
has err "keys/bb.crt: No such file"
has err "^Certificates in $keys: a, b$"
ping 2 --server b
has err 'keys is missing'
ping 1 --keys "$dir/other"
has err 'other/cluster.key: No such file'
has err '^Without --as it is the cluster.s key that proves who this is.$'
has err "^Certificates in $dir/other: a$"
chmod 644 "$keys/cluster.key"
ping 1 --keys "$keys"
has err 'cluster.key'
finish
