/* SPDX-License-Identifier: BSD-3-Clause */
/* If lnet_open() cannot create the second of its threads, it must return an
 * error, not hang, and leave nothing behind. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <ulnet/lnet.h>

typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
			 void *);

static int created;

/* Replaces the C library's function, and fails the second time. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*fn)(void *), void *arg)
{
	create_fn real = (create_fn)dlsym(RTLD_NEXT, "pthread_create");

	return ++created == 2 ? EAGAIN : real(thread, attr, fn, arg);
}

int main(void)
{
	struct ulnet_conf conf;
	struct lnet *node = NULL;
	int rc;

	lnet_conf_init(&conf);
	conf.cpts = 3;
	rc = lnet_open(&conf, &node);
	if (rc != -EAGAIN || node) {
		printf("open_thread: lnet_open() returned %d\n", rc);
		return 1;
	}
	return 0;
}
