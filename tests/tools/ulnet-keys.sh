#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ulnet-keys: what it makes, what it shows of it, and that "check" says what a node
# would say: of files that are missing, damaged, readable by others, or of somebody
# else, and of certificates that have ended, are not valid yet, were revoked, or that
# nobody has signed.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
program=$PWD/tools/bin/ulnet-keys
[ -x "$program" ] || skip "built without OpenSSL"
cd "$dir" || exit

keys() { # STATUS ARGUMENT...
	run "$1" "$program" "${@:2}"
}

# The date that is DAYS from now.
day() {
	date -u -d "$1 days" +%Y-%m-%d
}

# check NAME PATTERN: a node could not use its files in the folder "site".
refused() {
	keys 1 --dir site check "$1"
	silent out
	has err "$2"
}

# ---- what is made ----

before=$(day 30)
keys 0 --dir site authority our-site
same out <<'END'
site/authority.crt and revoked.crl are for every node; authority.key stays here
END
keys 0 --dir site --days 30 --nids '10.0.0.[1-9]@tcp' --nids '10.1.0.7@o2ib' node a b.example
keys 0 --dir site check a
has out "^site/a.crt: a node: a, signed by our-site, speaks for 10.0.0.\[1-9\]@tcp 10.1.0.7@o2ib, valid until ($before|$(day 30))$"
keys 0 --dir site check a b.example
has out "^site/b.example.crt: a node: b.example, "
keys 0 show site/authority.crt site/authority.key site/revoked.crl
has out '^site/authority.crt: an authority: our-site, signed by our-site, valid until '
has out '^site/authority.key: a key$'
has out '^site/revoked.crl: a list of what was revoked: 0 certificates$'
for file in site/{authority,a,b.example}.key; do
	expect "$file: mode" test "$(stat -c %a "$file")" = 600
done
expect "no other files" test "$(echo site/*)" = "site/a.crt site/a.key site/authority.crt \
site/authority.key site/b.example.crt site/b.example.key site/revoked.crl"
# OpenSSL's own program agrees.
run 0 openssl verify -x509_strict -crl_check -CAfile site/authority.crt \
	-CRLfile site/revoked.crl site/a.crt

# ---- nothing is lost ----

cp -r site copy
keys 1 --dir site node a
has err '^ulnet-keys: site/a.crt is there already, and is not written over$'
keys 1 --dir site authority other
has err '^ulnet-keys: site/authority.crt is there already'
run 0 diff -r site copy
keys 1 --dir site node authority
has err "a node cannot be called 'authority'"
for name in '' ../a .a -- a/b 'a b'; do
	[ "$name" = -- ] || keys 1 --dir site node "$name"
	has err "a name has 1 to 64 letters|cannot be called"
done
keys 1 --dir nowhere node a
has err '^ulnet-keys: nowhere: No such file or directory$'
mkdir empty
keys 1 --dir empty node a
has err "^ulnet-keys: empty/authority.crt: there is no authority: make one by 'ulnet-keys authority NAME'$"
run 0 diff -r site copy

# ---- command lines that are wrong ----

for arguments in "" nodes "nodes a" node "authority a b" "cluster a b" "--days 3 show a" \
	"--days 0 node c" "--nids x node c" "--nids 10.0.0.1@tcp check a" "--first node c" \
	"--renew cluster c" "--dirr site node c"; do
	# shellcheck disable=SC2086 # words
	keys 2 $arguments
	silent out
done
keys 2 chekc a
has err "^Did you mean 'check'\?$"
keys 2 --days 3 revoke a
has err '^ulnet-keys: revoke has no --days$'
keys 2 --nids 10.0.0@tcp node c
has err "is no list of NIDs"

# ---- files that are not what they should be ----

chmod 640 site/a.key
refused a '^ulnet-keys: site/a.key: others may read or change it \(mode 640\), .*: chmod 600$'
keys 1 show site/a.key
has err 'mode 640'
chmod 600 site/a.key
chmod 604 site/authority.key
keys 1 --dir site node c
has err 'site/authority.key: others may read or change it \(mode 604\)'
keys 1 --dir site revoke a
expect "no node c" test ! -e site/c.crt
chmod 600 site/authority.key
mv site/a.key a.key
refused a '^ulnet-keys: site/a.key: No such file or directory$'
cp -p site/b.example.key site/a.key
refused a 'site/a.key: it is not the key of the certificate'
head -c 100 a.key >site/a.key
refused a '^ulnet-keys: site/a.key: '
mv -f a.key site
sed 's/^\(M.*\)A/\1*/' site/a.crt >damaged.crt
keys 1 show damaged.crt
has err '^ulnet-keys: damaged.crt: damaged'
keys 1 show "$program"
has err 'nothing in PEM is in it'
keys 1 show site
has err '^ulnet-keys: site: a folder, and files are expected$'
keys 1 show nowhere
has err '^ulnet-keys: nowhere: No such file or directory$'
keys 0 --dir site check a
# Names with a mistake.
keys 1 --dir site check b.exmaple
same err <<'END'
ulnet-keys: site/b.exmaple.crt: No such file or directory
Did you mean 'b.example'?
END
keys 1 --dir site revoke nobody
same err <<'END'
ulnet-keys: site/nobody.crt: No such file or directory
Certificates in site: a, b.example
END
# What signs others is for no node.
refused authority 'do not believe it: unsuitable certificate purpose$'

# ---- who is not believed ----

# late FROM TO: makes the node "late", valid between these times.
cat >ca.cnf <<'END'
[ca]
default_ca = here
[here]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = names
unique_subject = no
[names]
commonName = supplied
END
: >index
echo 1000 >serial
run 0 openssl req -new -newkey rsa:2048 -nodes -keyout site/late.key -subj /CN=late -out late.csr
chmod 600 site/late.key
late() {
	run 0 openssl ca -batch -config ca.cnf -cert site/authority.crt -keyfile \
		site/authority.key -startdate "$1" -enddate "$2" -notext -in late.csr \
		-out site/late.crt
}
late 20200101000000Z 20201231000000Z
refused late 'site/late.crt: those who believe site/authority.crt do not believe it: certificate has expired$'
keys 0 show site/late.crt
has out '^site/late.crt: a node: late, signed by our-site, valid until 2020-12-31 \(over\)$'
late 20980101000000Z 20990101000000Z
refused late 'do not believe it: certificate is not yet valid$'
keys 0 show site/late.crt
has out 'signed by our-site, not valid before 2098-01-01, valid until 2099-01-01$'
# A certificate of another kind that is good is taken.
late "$(date -u +%Y%m%d)000000Z" 20990101000000Z
keys 0 --dir site check late
has out 'late, signed by our-site, valid until 2099-01-01$'
run 0 openssl req -x509 -new -key site/late.key -subj /CN=late -out site/late.crt
refused late 'do not believe it: self-signed certificate$'
keys 0 --dir other authority our-site
keys 0 --dir other node a
cp site/authority.crt site/revoked.crl .
cp other/authority.crt other/revoked.crl site
refused a 'those who believe site/authority.crt do not believe it: unable to get local issuer certificate$'
cp authority.crt revoked.crl site

keys 0 --dir site revoke a
cp site/revoked.crl .
refused a 'do not believe it: certificate revoked$'
keys 0 --dir site check b.example
keys 0 --dir site revoke a
run 0 cmp site/revoked.crl revoked.crl
keys 0 show site/revoked.crl
has out 'revoked: 1 certificates$'
serial=$(openssl x509 -noout -serial -in site/a.crt)
has out "^	serial ${serial#serial=} on $(day 0)$|^	serial ${serial#serial=} on $(day -1)$"
keys 1 --dir site revoke nobody
has err '^ulnet-keys: site/nobody.crt: No such file or directory$'
cp other/a.crt site/stranger.crt
cp other/authority.crt site/theirs.crt
keys 0 --dir site revoke b.example
keys 0 show site/revoked.crl
has out 'revoked: 2 certificates$'
# A list that has ended says nothing any more of what was revoked.
cp -r site ended
run 0 openssl ca -config ca.cnf -gencrl -cert ended/authority.crt -keyfile \
	ended/authority.key -crl_lastupdate 20200101000000Z -crl_nextupdate \
	20200102000000Z -out ended/revoked.crl
keys 1 --dir ended check b.example
has err 'CRL has expired'

# Many at the same time: none is lost.
keys 0 --dir many authority our-site
keys 0 --dir many node n1 n2 n3 n4 n5 n6 n7 n8
for n in 1 2 3 4 5 6 7 8; do
	"$program" --dir many revoke "n$n" >/dev/null &
done
wait
keys 0 show many/revoked.crl
has out 'revoked: 8 certificates$'

# ---- keys are changed ----

keys 1 --dir copy --renew node c
has err '^ulnet-keys: copy/c.crt: there is nothing to renew$'
cp copy/a.crt a.crt
keys 0 --dir copy --renew node a
run 0 cmp copy/a.old.crt a.crt
keys 0 --dir copy check a a.old
has out '^copy/a.crt: .*, speaks for 10.0.0.\[1-9\]@tcp 10.1.0.7@o2ib, '
has out '^copy/a.old.crt: a node: a, '
expect "another key" test "$(cat copy/a.key)" != "$(cat copy/a.old.key)"
keys 1 --dir copy --renew node a
has err '^ulnet-keys: copy/a.old.crt is still valid: revoke a.old, or remove this file$'
keys 0 --dir copy revoke a.old
keys 1 --dir copy check a.old
keys 0 --dir copy check a
keys 0 --dir copy --renew --nids 10.0.0.8@tcp node b.example
keys 0 --dir copy check b.example
has out 'speaks for 10.0.0.8@tcp, '

# The authority: while nodes have both, old certificates and new ones are good.
mkdir -m 700 both
cat copy/authority.crt other/authority.crt >both/authority.crt
cat copy/revoked.crl other/revoked.crl >both/revoked.crl
cp -p copy/b.example.* other/a.* both
keys 0 --dir both check a b.example
keys 1 --dir other check b.example
# And such a list is not written over.
cp copy/authority.key both
keys 1 --dir both revoke b.example
has err 'both/revoked.crl: lists of other authorities are in it, which would be lost'

# A cluster's keys.
keys 0 --dir cluster cluster one
keys 0 --dir cluster cluster two
keys 0 --dir cluster --first cluster three
keys 0 show cluster/cluster.key
same out <<'END'
cluster/cluster.key: a cluster's key: three, used
cluster/cluster.key: a cluster's key: one, believed
cluster/cluster.key: a cluster's key: two, believed
END
expect "cluster.key: mode" test "$(stat -c %a cluster/cluster.key)" = 600
expect "three keys" test "$(cut -d ' ' -f 2 cluster/cluster.key | sort -u | wc -l)" = 3
cp -p cluster/cluster.key .
keys 1 --dir cluster cluster two
has err "cluster/cluster.key: there is a key 'two' already"
for n in 4 5 6 7 8; do
	keys 0 --dir cluster cluster $n
done
keys 1 --dir cluster cluster 9
has err 'no more than 8 keys'
mv cluster.key cluster
chmod 644 cluster/cluster.key
keys 1 show cluster/cluster.key
has err 'others may read or change it \(mode 644\)'
keys 1 --dir cluster cluster four
has err 'others may read or change it \(mode 644\)'
cp cluster/cluster.key copy
keys 1 --dir copy check a
has err 'copy/cluster.key: others may read'

# ---- the page's examples ----

rm -rf server keys
PATH=$tools:$PATH
page=${srcdir:-.}
[[ $page == /* ]] || page=$OLDPWD/$page
examples=$(sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$page/man/man8/ulnet-keys.8" |
	sed -n '/^\.Bd/,/^\.Ed/{/^\./d;p}')
expect "the page has examples" test -n "$examples"
run 0 bash -euc "$examples"
has out '^server/server.crt: a node: server, signed by our-site, speaks for 10.0.0.1@tcp, '

finish
