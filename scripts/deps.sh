# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages of deps.txt that are missing. For sourcing.

# deps_list LIST GROUP...: the names of these groups.
deps_list() {
	local list=$1
	shift
	awk -v groups=" $* " '!/^#/ && NF && index(groups, " " $2 " ") {
		print $1
	}' "$list"
}

# deps_install LIST GROUP...
# Does nothing when all are there. Returns 1, having said what to do, when it
# cannot install.
deps_install() {
	local pkg as=() missing=()

	if ! command -v dpkg-query >/dev/null; then
		echo "not a Debian system: nothing installed, needed are" \
			"(Debian names):" $(deps_list "$@") >&2
		return 0
	fi
	for pkg in $(deps_list "$@"); do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$pkg" \
			2>/dev/null)" = installed ] || missing+=("$pkg")
	done
	[ ${#missing[@]} -gt 0 ] || return 0

	echo "missing packages: ${missing[*]}"
	if [ "$(id -u)" != 0 ]; then
		if ! sudo -n true 2>/dev/null; then
			echo "cannot install them as $(id -un); type:" >&2
			echo "  sudo apt-get update && sudo apt-get install" \
				"--no-install-recommends ${missing[*]}" >&2
			return 1
		fi
		as=(sudo -n)
	fi
	"${as[@]}" apt-get update -q &&
		"${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install \
			-q -y --no-install-recommends "${missing[@]}"
}
