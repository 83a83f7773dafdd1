/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lnd/o2iblnd/rdma.h"

/* Where each device has a file, until it goes. */
#define FILES "/dev/infiniband"
/* Where each one has a folder, until it has gone. */
#define FOLDERS "/sys/class/infiniband"

/* ---- which ones ---- */

/* Does the system still have the port's device? While the port has it open, no
 * other one is taken for it. */
static bool device_is_there(const struct ibr_port *p)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	bool is = !all;

	for (unsigned int i = 0; all && all[i] && !is; i++)
		is = all[i] == p->ctx->device;
	if (all)
		ibv_free_device_list(all);
	return is;
}

static bool is_listed(struct ibv_device **all, const char *name)
{
	for (; *all; all++)
		if (!strcmp(ibv_get_device_name(*all), name))
			return true;
	return false;
}

/* Is there one that is to go, but is not among @all any more, and waits? */
static bool one_goes(struct ibv_device **all)
{
	DIR *dir = opendir(FOLDERS);
	const struct dirent *e;
	bool goes = false;

	if (!dir)
		return false;
	while (!goes && (e = readdir(dir)))
		goes = e->d_name[0] != '.' && !is_listed(all, e->d_name);
	closedir(dir);
	return goes;
}

bool ibr_removal_check(void)
{
	struct ibv_context **open = NULL;
	struct ibv_device **all;
	int n = 0;

	all = ibv_get_device_list(&n);
	if (!all)
		return false;
	if (n > 0 && one_goes(all))
		open = rdma_get_devices(NULL);
	if (open)
		rdma_free_devices(open);
	ibv_free_device_list(all);
	return n > 0;
}

/* ---- the port's ---- */

void ibr_removal_begin(struct ibr_port *p)
{
	if (!p->id)
		return;
	/* The device waits for all that is known of it here. */
	ibr_cm_deafen(p);
	rdma_destroy_id(p->id);
	p->id = NULL;
	p->fault = "its RDMA device has gone";
	ibr_removal_check();
	for (unsigned int i = 0; i < p->ncpts; i++) {
		ibr_port_hold(p);
		loop_post(p->cpts[i].loop, &p->cpts[i].removal);
	}
	p->port.events->port_changed(&p->port, false, true, p->fault);
}

static void on_cpt_removal(struct work *w)
{
	struct ibr_cpt *cpt = container_of(w, struct ibr_cpt, removal);

	ibr_cpt_fail(cpt, -ENODEV);
	ibr_port_put(cpt->port);
}

void ibr_removal_init(struct ibr_cpt *cpt)
{
	cpt->removal.fn = on_cpt_removal;
}

/* ---- files ---- */

/* What has happened does not matter. False: nothing. */
static bool drain(int fd)
{
	char buf[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	bool any = false;

	while (read(fd, buf, sizeof(buf)) > 0)
		any = true;
	return any;
}

static void on_files(struct env_io *io, int revents)
{
	struct ibr_port *p = container_of(io, struct ibr_port, files_io);

	if (revents & ENV_ERROR || !drain(io->fd))
		return;
	ibr_port_hold(p);
	if (device_is_there(p))
		ibr_removal_check();
	else
		ibr_removal_begin(p);
	ibr_port_put(p);
}

static int files_open(struct env_io *io)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	if (inotify_add_watch(fd, FILES, IN_DELETE) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*io = (struct env_io){ .fd = fd, .events = ENV_READ, .fn = on_files };
	return 0;
}

int ibr_removal_watch(struct ibr_port *p)
{
	int rc = files_open(&p->files_io);

	if (!rc) {
		rc = loop_watch(p->loop, &p->files_io);
		if (rc)
			ibr_removal_unwatch(p);
	}
	if (rc)
		log_debug("o2iblnd", "%s cannot be watched: %s", FILES,
			  strerror(-rc));
	return device_is_there(p) ? 0 : -ENODEV;
}

void ibr_removal_unwatch(struct ibr_port *p)
{
	if (!p->files_io.fn)
		return;
	loop_unwatch(p->loop, &p->files_io);
	close(p->files_io.fd);
	p->files_io.fn = NULL;
}
