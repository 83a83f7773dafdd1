#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nets with tls: required, through the doors of lnetctl and of files: lnetd, keys, what
# is shown and exported, and whom discovery believes (requirements G12, I1).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

ulnet_keys=$PWD/tools/bin/ulnet-keys
[ -x "$ulnet_keys" ] || skip "built without OpenSSL"
free_port port || skip "perl cannot find a free port"
keys=$dir/keys

run 0 "$ulnet_keys" -d "$keys" authority site
run 0 "$ulnet_keys" -d "$keys" --nids 127.0.0.1@tcp --nids 127.0.0.1@tcp1 node a
run 0 "$ulnet_keys" -d "$keys" --nids 127.0.0.2@tcp --nids 127.0.0.2@tcp1 node b
run 0 "$ulnet_keys" -d "$keys" node c

at() { # NODE STATUS ARGUMENT...
	ctl "$2" --socket "$dir/$1" "${@:3}"
}

start_node() { # NAME ARGUMENT...
	need_lnetd "$1" --port "$port" --socket "$dir/$1" "${@:2}"
}

# ---- what is configured ----

start_node a --net 'tcp(127.0.0.1)' --keys "$keys" --as a
at a 0 net add --net tcp1 --if 127.0.0.1 --tls required
silent err
at a 0 net show --net tcp1 -v
has out '^ +tls: required$'
at a 0 net show --net tcp -v
lacks out 'tls: required'
at a 0 export --backup
cp "$dir/out" "$dir/backup"
run 0 grep -q 'tls: required' "$dir/backup"

# From a file.
cat >"$dir/b.yaml" <<'END'
net:
- net type: tcp
  local NI(s):
  - interfaces: {0: 127.0.0.2}
- net type: tcp1
  local NI(s):
  - interfaces: {0: 127.0.0.2}
    lnd tunables: {tls: required}
END
start_node b --config "$dir/b.yaml" --keys "$keys" --as b --log info \
	--lst 127.0.0.4@tcp1
at b 0 net show --net tcp1 -v
has out '^ +tls: required$'

# ---- who is believed ----

# What a net without TLS says of NIDs on one with it, is not taken.
at a 0 discover 127.0.0.2@tcp
has out '127.0.0.2@tcp$'
lacks out '127.0.0.2@tcp1'
at a 0 ping 127.0.0.2@tcp1 --timeout 60
has out '127.0.0.2@tcp1$'
# What the certificate bears out is, as a peer of its own.
ctl_at_last --socket "$dir/a" discover 127.0.0.2@tcp1
has out '127.0.0.2@tcp1$'
at a 0 peer show --nid 127.0.0.2@tcp1
has out 'primary nid: 127.0.0.2@tcp1$'
lacks out '127.0.0.2@tcp$'

# ---- who is not let in ----

# No keys, no such net.
start_node c --net 'tcp(127.0.0.3)'
at c 130 net add --net tcp1 --if 127.0.0.3 --tls required
has err 'no keys'
# A peer without TLS is closed at once, and both logs say why.
at c 0 net add --net tcp1 --if 127.0.0.3
at c 255 ping 127.0.0.2@tcp1 --timeout 60
await "$dir/b.err" '127.0.0.3:[0-9]+: refused: speaks no TLS'
await "$dir/c.err" 'or with TLS only'
stop_lnetd c
# A certificate without NIDs speaks for none.
start_node c --net 'tcp(127.0.0.3)' --keys "$keys" --as c
at c 0 net add --net tcp1 --if 127.0.0.3 --tls required
await "$dir/c.err" 'certificate of c does not speak for this NID'
at c 255 ping 127.0.0.2@tcp1 --timeout 60
await "$dir/b.err" 'certificate of c does not speak for 127.0.0.3@tcp1'
at b 0 stats show
has out 'peers_unproven: [1-9]'

# ---- other keys ----

# Old and new keys are good while both are in the files; lnetd runs on.
run 0 "$ulnet_keys" -d "$dir/second" authority second
run 0 "$ulnet_keys" -d "$dir/second" --nids 127.0.0.1@tcp1 node a
run 0 "$ulnet_keys" -d "$dir/second" --nids 127.0.0.2@tcp1 node b
run 0 "$ulnet_keys" -d "$dir/second" --nids 127.0.0.3@tcp1 node c
for file in authority.crt revoked.crl; do
	cat "$dir/second/$file" >>"$keys/$file"
done
at a 0 reload
silent err
kill -HUP "${pids[b]}"
await "$dir/b.err" 'SIGHUP: the keys are read again'
at a 0 ping 127.0.0.2@tcp1 --timeout 60
cp "$dir/second/"[abc].{crt,key} "$keys"
at a 0 reload
at b 0 reload
at a 0 ping 127.0.0.2@tcp1 --timeout 60
run 1 grep -q 'is cut off' "$dir/a.err" "$dir/b.err"
# The first authority goes: connections that were made by it are made again.
cp "$dir/second/"{authority.crt,revoked.crl} "$keys"
at a 0 reload
at b 0 reload
await "$dir/a.err" '127.0.0.2@tcp1: is cut off: its authority is not believed'
ctl_at_last --socket "$dir/a" ping 127.0.0.2@tcp1 --timeout 60
# What cannot be read is named, and the keys of before stay.
chmod 644 "$keys/b.key"
at b 243 reload
has err 'keys/b.key: others may read'
kill -HUP "${pids[b]}"
await "$dir/b.err" 'SIGHUP: .*keys/b.key: others may read.*stay'
chmod 600 "$keys/b.key"
at a 0 ping 127.0.0.2@tcp1 --timeout 60
# A daemon, which leaves the directory that it was started in, finds them again.
run 0 env -C "$dir" "$lnetd" --keys keys --as b --socket d --pidfile pid --port "$port"
pids[d]=$(<"$dir/pid")
at d 0 reload
silent err
kill "${pids[d]}"
unset 'pids[d]'
# Who is revoked while he is connected is cut off.
at c 0 reload
ctl_at_last --socket "$dir/c" ping 127.0.0.2@tcp1 --timeout 60
run 0 "$ulnet_keys" -d "$dir/second" revoke c
cp "$dir/second/revoked.crl" "$keys"
at b 0 reload
await "$dir/b.err" '127.0.0.3@tcp1: is cut off: its certificate was revoked'
at c 255 ping 127.0.0.2@tcp1 --timeout 60
at a 0 ping 127.0.0.2@tcp1 --timeout 60

# ---- NIDs by rules ----

# A certificate without NIDs, and rules for its name on the node that it calls.
run 0 "$ulnet_keys" -d "$dir/second" node d
cp "$dir/second/"d.{crt,key} "$keys"
start_node d --net 'tcp(127.0.0.5)' --keys "$keys" --as d
at d 0 net add --net tcp1 --if 127.0.0.5 --tls required
await "$dir/d.err" 'certificate of d does not speak for this NID.*lnetctl tls set'
at d 255 ping 127.0.0.2@tcp1 --timeout 60
await "$dir/b.err" 'certificate of d does not speak for 127.0.0.5@tcp1'
at b 0 tls set --name d --nids 127.0.0.9@tcp1
at d 255 ping 127.0.0.2@tcp1 --timeout 60
at b 0 tls set --name d --nids '127.0.0.[5-6]@tcp1'
silent err
ctl_at_last --socket "$dir/d" ping 127.0.0.2@tcp1 --timeout 60
at b 0 tls show --name d
has out 'name: d$'
has out 'nids: .?127.0.0.\[5-6\]@tcp1'
at b 0 export --backup "$dir/rules"
sed -ni '/^tls:/,$p' "$dir/rules"
run 0 grep -c 'name: d$' "$dir/rules"
# What cannot be done as a whole is not done, and the rule of before stays.
at b 254 import --del <<<'tls: [{name: d}, {name: nobody}]'
at b 0 tls show
has out 'name: d$'
ctl_at_last --socket "$dir/d" ping 127.0.0.2@tcp1 --timeout 60
# A rule that says less, and one that is gone, cut off.
at b 0 tls set --name d --nids 127.0.0.6@tcp1
await "$dir/b.err" '127.0.0.5@tcp1: is cut off: neither its certificate nor a rule'
at d 255 ping 127.0.0.2@tcp1 --timeout 60
at b 0 import <<<'tls: [{name: "d*", nids: [127.0.0.5@tcp1, "127.0.0.[7-8]@tcp1"]}]'
ctl_at_last --socket "$dir/d" ping 127.0.0.2@tcp1 --timeout 60
at b 0 tls del --all
at d 255 ping 127.0.0.2@tcp1 --timeout 60
at b 0 tls show
lacks out 'name'
at b 0 import "$dir/rules"
at b 0 tls show
has out 'name: d$'
ctl_at_last --socket "$dir/d" ping 127.0.0.2@tcp1 --timeout 60
at a 0 ping 127.0.0.2@tcp1 --timeout 60
stop_lnetd d

# ---- a self-test ----

# The console needs keys, too; the session keeps where they are, also for commands
# that are run in another directory.
export LST_SESSION=tls-test XDG_RUNTIME_DIR=$dir/run
mkdir "$XDG_RUNTIME_DIR"
run 0 "$ulnet_keys" -d "$dir/second" --nids 127.0.0.4@tcp1 node console
cp "$dir/second/"console.{crt,key} "$keys"
cat >"$dir/console.yaml" <<'END'
net:
- net type: tcp1
  local NI(s):
  - interfaces: {0: 127.0.0.4}
    lnd tunables: {tls: required}
END
console=(--config "$dir/console.yaml" --port "$port")
run 2 "$lst" "${console[@]}" --as console new_session
has err 'keys is missing'
run 1 "$lst" "${console[@]}" new_session
has err 'the node has no keys'
run 0 env -C "$dir" "$lst" "${console[@]}" --keys keys --as console new_session
run 0 "$lst" add_group b 127.0.0.2@tcp1
run 0 "$lst" ping --group b
has out '127.0.0.2@tcp1: active'
run 0 "$lst" end_session

# ---- a backup brings it back ----

at a 0 net del --net tcp
at a 0 net del --net tcp1
at a 0 import <"$dir/backup"
at a 0 net show --net tcp1 -v
has out '^ +tls: required$'
at a 0 ping 127.0.0.2@tcp1 --timeout 60

# ---- mistakes ----

at a 234 net add --net tcp2 --if 127.0.0.1 --tls 2
has err 'tls: required or off is expected'
run 2 "$lnetd" --as a
has err 'keys is missing'
finish
