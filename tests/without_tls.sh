#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A build --without-tls links: secure/none.c, or identity.c, which both builds have, has
# each function of secure/ that the libraries call. Looked at in a build with TLS, since
# few people have one without.
set -uo pipefail
src=${srcdir:-.}

symbols() { # KINDS ARCHIVE...
	nm "${@:2}" 2>/dev/null | awk -v kinds="$1" '
		NF >= 2 && index(kinds, $(NF - 1)) { print $NF }' | LC_ALL=C sort -u
}

defined=$(symbols T libulnetsecure.a)
[ -n "$defined" ] || {
	echo "nm reads no symbols here, as with LTO"
	exit 77
}
grep -qx seal_record <<<"$defined" || {
	echo "built without OpenSSL: the linker has looked"
	exit 77
}
called=$(LC_ALL=C comm -12 <(echo "$defined") \
	<(symbols U libulnetcore.a libulrpccore.a libulnetctlcore.a))
bad=0
for name in $called; do
	grep -qE "^[a-z].*\b$name\(" "$src"/secure/{none,identity}.c || {
		echo "secure/none.c: no $name()"
		bad=1
	}
done
echo "$(wc -w <<<"$called") functions"
[ -n "$called" ] && [ $bad = 0 ]
