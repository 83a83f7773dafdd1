/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service ulrpc.About, which tells what services a node has. Uses only the
 * public interface of libulrpc. One worker answers, so that a client that asks
 * a lot takes no time of the CPTs, nor of other services' workers.
 */
#include "ulnet/stub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rpc/stub/schema.h"

/* bytes of an answer, at most; a service whose types need more is not described
 */
#define MEMORY_MAX (8u << 20)

struct about {
	Ulrpc__About_Service service;
	struct ulrpc *rpc;
	/* what the user has set as conf.ended; NULL: nothing */
	void (*ended)(void *arg);
	void *ended_arg;
};

static struct about *about_of(Ulrpc__About_Service *service)
{
	return container_of(service, struct about, service);
}

/* ---- Health ---- */

struct asking {
	const char *name; /* name of the service; "": all services */
	enum ulrpc_health health;
};

/* Is called for each service. All services together are as healthy as the worst
 * of them. */
static void look_at_health(void *arg, const struct ulrpc_service_info *info)
{
	struct asking *a = arg;

	if (!a->name[0])
		a->health = MAX(a->health, info->health);
	else if (!strcmp(a->name, info->name))
		a->health = info->health;
}

_Static_assert((int)ULRPC__HEALTH_REPLY__STATUS__NOT_SERVING ==
			       (int)ULRPC_HEALTH_NOT_SERVING &&
		       (int)ULRPC__HEALTH_REPLY__STATUS__SERVING ==
			       (int)ULRPC_HEALTH_SERVING,
	       "one enum");

static void about_health(Ulrpc__About_Service *self,
			 const Ulrpc__HealthRequest *request,
			 Ulrpc__HealthReply_Closure closure, void *data)
{
	Ulrpc__HealthReply reply = ULRPC__HEALTH_REPLY__INIT;
	struct asking asking = { .name = request->service };

	ulrpc_services(about_of(self)->rpc, look_at_health, &asking);
	reply.status = (Ulrpc__HealthReply__Status)asking.health;
	closure(&reply, data);
}

/* ---- Services ---- */

typedef Ulrpc__ServicesReply__Service service_message;
typedef Ulrpc__ServicesReply__Method method_message;

struct listing {
	struct arena arena;
	service_message **services; /* array of @room, with @n in use */
	size_t n, room;
	bool no_memory;
};

static char *copy(struct arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *to = arena_alloc(arena, size);

	return to ? memcpy(to, text, size) : NULL;
}

static int list_methods(struct arena *arena, service_message *service,
			const struct ulrpc_service_info *info)
{
	method_message *methods;
	size_t n = 0;

	while (info->methods[n])
		n++;
	methods = arena_alloc(arena, n * sizeof(*methods));
	service->method = arena_alloc(arena, n * sizeof(*service->method));
	if (!methods || !service->method)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		ulrpc__services_reply__method__init(&methods[i]);
		methods[i].name = copy(arena, info->methods[i]);
		if (!methods[i].name)
			return -ENOMEM;
		methods[i].number = ulrpc_method(info->methods[i]);
		service->method[i] = &methods[i];
	}
	service->n_method = n;
	return 0;
}

/* Makes room for one more service; a node may have any number of them. */
static bool listing_grow(struct listing *l)
{
	size_t room = MAX(2 * l->room, (size_t)16);
	service_message **services;

	if (l->n < l->room)
		return true;
	services = arena_alloc(&l->arena, room * sizeof(services[0]));
	if (!services)
		return false;
	if (l->n)
		memcpy(services, l->services, l->n * sizeof(services[0]));
	l->services = services;
	l->room = room;
	return true;
}

static void list_service(void *arg, const struct ulrpc_service_info *info)
{
	struct listing *l = arg;
	service_message *service = arena_alloc(&l->arena, sizeof(*service));

	if (!service || !listing_grow(l)) {
		l->no_memory = true;
		return;
	}
	ulrpc__services_reply__service__init(service);
	service->name = copy(&l->arena, info->name);
	service->portal = info->portal;
	service->health = (Ulrpc__HealthReply__Status)info->health;
	service->described = info->descriptor != NULL;
	if (!service->name || list_methods(&l->arena, service, info))
		l->no_memory = true;
	else
		l->services[l->n++] = service;
}

static void about_services(Ulrpc__About_Service *self,
			   const Ulrpc__ServicesRequest *request,
			   Ulrpc__ServicesReply_Closure closure, void *data)
{
	Ulrpc__ServicesReply reply = ULRPC__SERVICES_REPLY__INIT;
	struct listing listing = { .n = 0 };

	(void)request;
	arena_init(&listing.arena, NULL, 0, MEMORY_MAX);
	ulrpc_services(about_of(self)->rpc, list_service, &listing);
	reply.service = listing.services;
	reply.n_service = listing.n;
	if (listing.no_memory)
		ulrpc_closure_fail(data, -ENOMEM);
	else
		closure(&reply, data);
	arena_fini(&listing.arena);
}

/* ---- Describe ---- */

struct describing {
	const char *name;
	struct arena arena;
	Ulrpc__Schema__FileSet files;
	Ulrpc__DescribeReply reply;
	int rc;
};

static void describe_service(void *arg, const struct ulrpc_service_info *info)
{
	const ProtobufCServiceDescriptor *descriptor = info->descriptor;
	struct describing *d = arg;

	if (strcmp(d->name, info->name) != 0)
		return;
	d->rc = descriptor ? schema_add(&d->files, &d->arena, descriptor,
					info->streaming)
			   : -ENODATA;
	if (!d->rc) {
		d->reply.service = (char *)(uintptr_t)descriptor->name;
		d->reply.files = &d->files;
	}
}

static void describe_failed(void *data, const struct describing *d)
{
	char text[160];

	snprintf(text, sizeof(text),
		 d->rc == -ENOENT    ? "there is no service '%.64s'"
		 : d->rc == -ENODATA ? "service '%.64s' does not tell what its "
				       "messages look like"
				     : "service '%.64s': no memory",
		 d->name);
	ulrpc_closure_fail_text(data, d->rc, text);
}

static void about_describe(Ulrpc__About_Service *self,
			   const Ulrpc__DescribeRequest *request,
			   Ulrpc__DescribeReply_Closure closure, void *data)
{
	struct describing d = { .name = request->service,
				.files = ULRPC__SCHEMA__FILE_SET__INIT,
				.reply = ULRPC__DESCRIBE_REPLY__INIT,
				.rc = -ENOENT };

	arena_init(&d.arena, NULL, 0, MEMORY_MAX);
	ulrpc_services(about_of(self)->rpc, describe_service, &d);
	if (d.rc)
		describe_failed(data, &d);
	else
		closure(&d.reply, data);
	arena_fini(&d.arena);
}

/* ---- starting ---- */

static const struct ulrpc_method_options options[] = {
	{ .method = "Health", .semantics = ULRPC_IDEMPOTENT },
	{ .method = "Services", .semantics = ULRPC_IDEMPOTENT },
	{ .method = "Describe", .semantics = ULRPC_IDEMPOTENT },
	{ .method = NULL },
};

static void about_on_ended(void *arg)
{
	struct about *about = arg;

	if (about->ended)
		about->ended(about->ended_arg);
	free(about);
}

int ulrpc_about_start(struct ulrpc *rpc, const struct ulrpc_service_conf *conf,
		      struct ulrpc_service **service_p)
{
	struct about *about = malloc(sizeof(*about));
	struct ulrpc_service_conf mine;
	int rc;

	if (!about)
		return -ENOMEM;
	if (conf)
		mine = *conf;
	else
		ulrpc_service_conf_init(&mine);
	*about = (struct about){ .service = ULRPC__ABOUT__INIT(about_),
				 .rpc = rpc,
				 .ended = mine.ended,
				 .ended_arg = mine.ended_arg };
	mine.ended = about_on_ended;
	mine.ended_arg = about;
	rc = ulrpc_serve(rpc, &about->service.base, options, &mine, service_p);
	if (rc)
		free(about);
	return rc;
}
