#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# files.sh DIR: do the packages have what "make install" has put below DIR, a
# shellcheck disable=SC2317 # debian and rpm are called by their names
# prefix, each file in one of them? And is their version that of the tree?
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

installed=$1 failed=0

complain() {
	echo "$*" >&2
	failed=1
}

# As the files are called where the prefix is /usr; with those that need it.
files() {
	(cd "$installed" && find . ! -type d) |
		sed 's|^\./|usr/|; s|^usr/lib/|usr/lib/arch/|'
	echo lib/systemd/system/lnetd.service
	echo etc/ulnet/lnet.conf
}

# "PACKAGE PATTERN", of Debian's, and of the RPMs
debian() {
	local list

	for list in debian/*.install debian/not-installed; do
		sed "s|^|$(basename "$list" .install) |" "$list"
	done
}

rpm() {
	awk '$1 == "%files" { on = $NF == "%files" ? "ulnet" : $NF; next }
		/^%(changelog|post)/ { on = "" }
		on && /^%(dir|license|doc) / { next }
		on && NF { print on, $NF }' packaging/ulnet.spec |
		sed 's|%{_bindir}|usr/bin|; s|%{_sbindir}|usr/sbin|
			s|%{_libdir}|usr/lib/*|; s|%{_includedir}|usr/include|
			s|%{_datadir}|usr/share|; s|%{_mandir}|usr/share/man|
			s|%{_unitdir}|lib/systemd/system|; s|%{_sysconfdir}|etc|'
	echo "removed usr/lib/*/*.la"
}

# check WHAT: each file in one package, each pattern for some file
check() {
	local file package pattern where
	local -A used=()

	while read -r file; do
		where=
		while read -r package pattern; do
			# shellcheck disable=SC2053 # a pattern
			[[ $file == $pattern ]] || continue
			where+=" $package"
			used[$package $pattern]=yes
		done < <("$1")
		[ "$(wc -w <<<"$where")" = 1 ] ||
			complain "$1: $file: in${where:- no package}"
	done < <(files)
	while read -r package pattern; do
		[ -n "${used[$package $pattern]:-}" ] ||
			complain "$1: $package: no file is $pattern"
	done < <("$1")
}

# is WHAT VERSION
is() {
	[ "$2" = "$version" ] || complain "$1: version $2, expected $version"
}

version=$(sed -n 's/^AC_INIT(\[ulnet\], \[\(.*\)\])/\1/p' configure.ac)
is debian/changelog "$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)"
is packaging/ulnet.spec "$(awk '$1 == "Version:" { print $2 }' packaging/ulnet.spec)"
check debian
check rpm
exit $failed
