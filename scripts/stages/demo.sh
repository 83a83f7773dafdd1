# SPDX-License-Identifier: BSD-3-Clause
# Runs ./demo as the user who runs ./check, and as a user who may write nowhere. For
# sourcing by ./check.
stage demo touched '^. (demo|deps\.txt|scripts/|examples/|tools/|services/|include/|lib.*map|.*\.pc\.in|configure|m4/|(.*/)?(Makefile\.am|module\.mk))'

# The options are those of ./check's other builds with gcc, so that ccache has the
# objects.
run_demo() {
	ULNET_BUILD=$BUILD DEMO_CONFIGURE=--enable-werror "$SRC/demo"
}

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# Runs ./demo as a user who may write to nothing but $1, where nothing is to be left.
# The user gets a copy of what ccache has.
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
