#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# boot.sh ROOT: in a virtual machine (tests/vm/vm-run): boots the systemd of that
# root, in which ulnet-tools is installed, and does with lnetd.service what an
# administrator would, and dpkg.
set -euo pipefail

root=$1 over=/mnt/root
mount --make-rprivate /
mount -t tmpfs none /mnt
mkdir /mnt/up /mnt/work $over
mount -t overlay -o "lowerdir=$root,upperdir=/mnt/up,workdir=/mnt/work" none $over

cat >$over/try <<'END'
#!/bin/sh
set -ex

# What set -e does not say of a command after "!".
not() {
	if "$@"; then exit 1; fi
}

cat >/etc/ulnet/lnet.conf <<.
net:
    - {net type: tcp, local NI(s): [{interfaces: {0: lo}}]}
    - {net type: shm, local NI(s): [{interfaces: {0: auto}}]}
.
systemd-analyze --man=no verify lnetd.service
systemctl start lnetd
systemctl is-active lnetd
lnetctl net show --net tcp
lnetctl ping 127.0.0.1@tcp
systemctl restart lnetd
lnetctl net show --net tcp
# A node that runs is another one after an upgrade; one that does not is not started.
before=$(systemctl show -p MainPID --value lnetd)
dpkg -i /packages/ulnet-tools_*.deb
systemctl is-active lnetd
[ "$(systemctl show -p MainPID --value lnetd)" != "$before" ]
lnetctl net show --net tcp
systemctl stop lnetd
not lnetctl net show
[ "$(systemctl show -p Result --value lnetd)" = success ]
journalctl -u lnetd --no-pager
[ -z "$(journalctl -q -u lnetd -p warning --no-pager)" ]
dpkg -i /packages/ulnet-tools_*.deb
not systemctl is-active lnetd
# One that is removed runs no more.
systemctl start lnetd
dpkg -r ulnet-tools
not systemctl is-active lnetd
not pidof lnetd
dpkg -i /packages/ulnet-tools_*.deb
# A configuration that is wrong is told.
echo "frob: []" >/etc/ulnet/lnet.conf
not systemctl start lnetd
journalctl --sync
journalctl -u lnetd --no-pager | grep "unknown key 'frob'"
echo "all of it"
END
chmod +x $over/try
cat >$over/etc/systemd/system/try.service <<'END'
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/try >/result 2>&1'
ExecStopPost=/bin/systemctl --no-block poweroff
END
mkdir -p $over/etc/systemd/system/graphical.target.wants
ln -s ../try.service $over/etc/systemd/system/graphical.target.wants

# The first process of namespaces of its own.
cat >/mnt/boot <<'END'
#!/bin/bash
root=/mnt/root
mount -t proc proc $root/proc && mount -t sysfs sys $root/sys &&
	mount -t cgroup2 cgroup $root/sys/fs/cgroup &&
	mount -t devtmpfs dev $root/dev && mkdir -p $root/dev/shm &&
	mount -t tmpfs shm $root/dev/shm && mount -t tmpfs run $root/run &&
	ip link set lo up &&
	exec env -i container=test PATH="$PATH" chroot $root \
		/lib/systemd/systemd --log-target=console --show-status=no
END
chmod +x /mnt/boot
timeout 300 unshare --pid --fork --cgroup --ipc --uts --mount /mnt/boot </dev/null ||
	true # it ends by a signal when it has powered off
cat $over/result
grep -qx 'all of it' $over/result
