# SPDX-License-Identifier: BSD-3-Clause
# ./demo, as whoever calls this, and as somebody who may write nowhere. For sourcing
# by ./check.
stage demo touched '^. (demo|deps\.txt|scripts/|examples/|tools/|services/|include/|lib.*map|.*\.pc\.in|configure|m4/|(.*/)?(Makefile\.am|module\.mk))'

# As ./check builds everything else with gcc, so that ccache knows it already.
run_demo() {
	ULNET_BUILD=$BUILD DEMO_CONFIGURE=--enable-werror "$SRC/demo"
}

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# Who may write to nothing but $1, in which nothing is to be left, and has what was
# compiled so far.
run_demo_as_nobody() {
	local left cache=$1.ccache status=0

	[ ! -d "$BUILD/ccache" ] || cp -r "$BUILD/ccache" "$cache"
	mkdir -p "$cache" && chown -R 65534 "$cache"
	"${nobody[@]}" env -u ULNET_BUILD HOME="$1" TMPDIR="$1" \
		CCACHE_DIR="$cache" DEMO_CONFIGURE=--enable-werror \
		"$SRC/demo" || status=$?
	rm -rf "$cache"
	left=$(ls -A "$1")
	[ -z "$left" ] || {
		echo "left behind: $left"
		return 1
	}
	return $status
}

stage_demo() {
	local what="./demo as an ordinary user" dir

	step "./demo" run_demo || true
	if [ "$(id -u)" != 0 ]; then
		skip "$what" "that is what it was: only root can become another"
	elif ! "${nobody[@]}" test -r "$SRC/configure.ac"; then
		skip "$what" "user 65534 may not read $SRC"
	else
		dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-demo.XXXXXX") &&
			chown 65534 "$dir"
		step "$what" run_demo_as_nobody "$dir" || true
		rm -rf "$dir"
	fi
}
