/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stub/stub.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "rpc/stub/message.h"
#include "ulnet/loop.h"

struct stub {
	/* the first member, since users have a pointer to it */
	ProtobufCService service;
	struct ulrpc *rpc;
	struct ulrpc_client *client; /* NULL: calls go another way */
	const struct stub_way *way;  /* valid without a client, with @to */
	void *to;
	struct stub_method *methods;
	_Atomic uint64_t deadline;
};

/* A call under way. Its stub may have been freed meanwhile. */
struct stub_call {
	/* calls on_failure(), if the call could not be made */
	struct ulnet_work work;
	int status;
	struct message_type reply;
	/* what to call at the end: this, or the closure, or nothing */
	ulrpc_message_fn done;
	ProtobufCClosure closure;
	void *arg;
};

/* what ulrpc_stub_outcome() returns while a closure runs in this thread; else
 * NULL */
static _Thread_local const struct ulrpc_outcome *outcome_now
	__attribute__((tls_model("initial-exec")));

const struct ulrpc_outcome *ulrpc_stub_outcome(void)
{
	return outcome_now;
}

/* ---- the end of calls ---- */

static void call_closure(const struct stub_call *call,
			 const struct ulrpc_outcome *outcome,
			 const ProtobufCMessage *reply)
{
	const struct ulrpc_outcome *outer = outcome_now;

	outcome_now = outcome;
	if (call->closure)
		call->closure(reply, call->arg);
	else if (call->done)
		call->done(call->arg, outcome, reply);
	outcome_now = outer;
}

/* Sets the outcome of a call whose reply could not be unpacked. */
static void outcome_set_unread(struct ulrpc_outcome *outcome, bool no_memory)
{
	outcome->status = no_memory ? -ENOMEM : -EBADMSG;
	outcome->cause =
		no_memory ? ULRPC_CAUSE_NO_MEMORY : ULRPC_CAUSE_BAD_REPLY;
}

void stub_on_done(void *arg, const struct ulrpc_outcome *outcome,
		  const void *body, size_t length)
{
	struct stub_call *call = arg;
	ProtobufCMessage *reply;
	struct ulrpc_outcome worse;
	struct arena arena;
	uint8_t first[1024];

	if (outcome->cause != ULRPC_CAUSE_OK) {
		call_closure(call, outcome, NULL);
		free(call);
		return;
	}
	arena_init(&arena, first, sizeof(first),
		   message_heap_max(&call->reply, length));
	reply = message_unpack(&call->reply, body, length, &arena.allocator);
	if (!reply) {
		worse = *outcome;
		outcome_set_unread(&worse, arena.no_memory);
		outcome = &worse;
	}
	call_closure(call, outcome, reply);
	arena_fini(&arena);
	free(call);
}

/* ---- calls that cannot be made ---- */

static enum ulrpc_cause stub_cause_of(int status)
{
	switch (status) {
	case -ENOMEM:
		return ULRPC_CAUSE_NO_MEMORY;
	case -ESHUTDOWN:
		return ULRPC_CAUSE_SHUTDOWN;
	case -EAGAIN: /* too many calls of the client have not ended */
		return ULRPC_CAUSE_OVERLOADED;
	default:
		return ULRPC_CAUSE_BAD_REQUEST;
	}
}

static void tell_failure(const struct stub_call *call)
{
	struct ulrpc_outcome outcome = {
		.status = call->status,
		.cause = stub_cause_of(call->status),
		.execution = ULRPC_NOT_EXECUTED,
		/* -EBUSY says that another call has the bulk */
		.bulk_free = call->status != -EBUSY,
	};

	call_closure(call, &outcome, NULL);
}

static void on_failure(struct ulnet_work *work)
{
	struct stub_call *call = container_of(work, struct stub_call, work);

	tell_failure(call);
	free(call);
}

/* Ends @call later, on the CPT of the stub's calls, because its closure must
 * not run inside of the function that made the call. */
static void fail_later(const struct stub *stub, struct stub_call *call,
		       int status)
{
	call->status = status;
	call->work.fn = on_failure;
	lnet_post(ulrpc_node(stub->rpc),
		  stub->client ? ulrpc_client_cpt(stub->client)
			       : stub->way->cpt(stub->to),
		  &call->work);
}

/* ---- making calls ---- */

static void method_conf(const struct stub *stub, const struct stub_method *m,
			struct ulrpc_call_conf *conf)
{
	*conf = (struct ulrpc_call_conf){
		.deadline = atomic_load_explicit(&stub->deadline,
						 memory_order_relaxed),
		.reply_max = m->options.reply_max,
		.priority = m->options.priority,
		.semantics = m->options.semantics,
	};
}

/* Appends the bulks in @request to those of @conf, which then borrows @list. */
static int add_bulks(const struct stub_method *m,
		     const ProtobufCMessage *request,
		     struct ulrpc_call_conf *conf, struct bulk_list *list)
{
	int rc;

	if (!m->input.bulks)
		return 0;
	if (conf->nbulks > ULRPC_BULKS_MAX)
		return -E2BIG;
	for (list->n = 0; list->n < conf->nbulks; list->n++)
		list->bulks[list->n] = conf->bulks[list->n];
	rc = message_bulks(request, list);
	conf->bulks = list->bulks;
	conf->nbulks = list->n;
	return rc;
}

/* The arguments of a call, except the function that is called at its end. */
struct call_args {
	struct ulrpc_call_conf conf;
	struct bulk_list list;
	struct packed body;
};

/* Fills in the arguments of a call of @m. @conf: NULL: the options of @m are
 * used. Returns 0; -ENOENT: @m is NULL, as there is no such method;
 * -EOPNOTSUPP: it streams; -EINVAL; -E2BIG; -ENOMEM. On success the caller owes
 * packed_fini(&args->body). */
static int call_args_init(struct call_args *args, const struct stub *stub,
			  const struct stub_method *m,
			  const ProtobufCMessage *request,
			  const struct ulrpc_call_conf *conf)
{
	int rc;

	if (!m)
		return -ENOENT;
	if (m->options.streaming)
		return -EOPNOTSUPP;
	if (request->descriptor != m->input.descriptor)
		return -EINVAL;
	if (conf)
		args->conf = *conf;
	else
		method_conf(stub, m, &args->conf);
	rc = add_bulks(m, request, &args->conf, &args->list);
	return rc ? rc : packed_init(&args->body, request);
}

static int submit(struct stub *stub, const struct stub_method *m,
		  const ProtobufCMessage *request,
		  const struct ulrpc_call_conf *conf, struct stub_call *call,
		  void *own, struct ulrpc_call **call_p)
{
	struct call_args args;
	int rc = call_args_init(&args, stub, m, request, conf);

	if (rc)
		return rc;
	if (likely(stub->client))
		rc = ulrpc_call(stub->client, m->number, args.body.bytes,
				args.body.length, &args.conf, stub_on_done,
				call, call_p);
	else if (call_p)
		rc = -EOPNOTSUPP;
	else
		rc = stub->way->call(stub->to, own, m->number, args.body.bytes,
				     args.body.length, &args.conf, call);
	packed_fini(&args.body);
	return rc;
}

/* ProtobufCService.invoke of all stubs: every generated function calls it. */
static void invoke(ProtobufCService *service, unsigned int index,
		   const ProtobufCMessage *request, ProtobufCClosure closure,
		   void *closure_data)
{
	struct stub *stub = container_of(service, struct stub, service);
	const struct stub_method *m = &stub->methods[index];
	struct stub_call *call = malloc(sizeof(*call));
	struct stub_call lost = { .status = -ENOMEM,
				  .closure = closure,
				  .arg = closure_data };
	int rc;

	if (!call) {
		/* called at once, because there is no memory to do it later */
		tell_failure(&lost);
		return;
	}
	*call = (struct stub_call){ .reply = m->output,
				    .closure = closure,
				    .arg = closure_data };
	rc = submit(stub, m, request, NULL, call, NULL, NULL);
	if (rc)
		fail_later(stub, call, rc);
}

/* ---- stubs ---- */

static void destroy(ProtobufCService *service)
{
	ulrpc_stub_free(service);
}

static int stub_new(const struct stub *first, const char *missing,
		    const ProtobufCServiceDescriptor *descriptor,
		    const struct ulrpc_method_options *options,
		    uint64_t deadline, ProtobufCService **stub_p)
{
	struct conf_owner owner = { "stub", NULL, NULL };
	struct stub *stub;
	int rc;

	if (missing || !descriptor)
		return conf_refuse(owner, -EINVAL, "%s: it is NULL",
				   missing ? missing : "descriptor");
	if (!deadline)
		return conf_refuse(owner, -EINVAL,
				   "deadline: 0 is no time for a call");
	stub = malloc(sizeof(*stub));
	if (!stub)
		return -ENOMEM;
	*stub = *first;
	rc = stub_methods_new(descriptor, options, owner, &stub->methods);
	if (rc) {
		free(stub);
		return rc;
	}
	/* Without the names, statistics would show numbers. If there is no
	 * memory for them, the stub works all the same. */
	for (unsigned int i = 0; i < descriptor->n_methods; i++)
		(void)ulrpc_method_declare(stub->rpc, stub->methods[i].name);
	stub->service = (ProtobufCService){ descriptor, invoke, destroy };
	atomic_init(&stub->deadline, deadline);
	*stub_p = &stub->service;
	return 0;
}

int ulrpc_stub_new(struct ulrpc_client *client,
		   const ProtobufCServiceDescriptor *descriptor,
		   const struct ulrpc_method_options *options,
		   uint64_t deadline, ProtobufCService **stub_p)
{
	struct stub first = { .client = client };

	if (client)
		first.rpc = ulrpc_client_rpc(client);
	return stub_new(&first, client ? NULL : "client", descriptor, options,
			deadline, stub_p);
}

int stub_new_way(struct ulrpc *rpc, const struct stub_way *way, void *to,
		 const ProtobufCServiceDescriptor *descriptor,
		 const struct ulrpc_method_options *options, uint64_t deadline,
		 ProtobufCService **stub_p)
{
	const struct stub first = { .rpc = rpc, .way = way, .to = to };

	return stub_new(&first, to ? NULL : way->name, descriptor, options,
			deadline, stub_p);
}

void ulrpc_stub_free(ProtobufCService *service)
{
	struct stub *stub;

	if (!service)
		return;
	stub = container_of(service, struct stub, service);
	free(stub->methods);
	free(stub);
}

void ulrpc_stub_deadline(ProtobufCService *service, uint64_t deadline)
{
	struct stub *stub = container_of(service, struct stub, service);

	atomic_store_explicit(&stub->deadline, deadline, memory_order_relaxed);
}

/* ---- calls by name ---- */

static const struct stub_method *stub_find(const ProtobufCService *service,
					   const char *name)
{
	const struct stub *stub =
		container_of(service, const struct stub, service);
	const ProtobufCMethodDescriptor *m =
		protobuf_c_service_descriptor_get_method_by_name(
			service->descriptor, name);

	return m ? &stub->methods[m - service->descriptor->methods] : NULL;
}

int ulrpc_stub_conf(const ProtobufCService *service, const char *method,
		    struct ulrpc_call_conf *conf)
{
	const struct stub_method *m = stub_find(service, method);

	if (!m)
		return -ENOENT;
	method_conf(container_of(service, const struct stub, service), m, conf);
	return 0;
}

static int message_call(ProtobufCService *service, const char *method,
			const ProtobufCMessage *request,
			const struct ulrpc_call_conf *conf,
			ulrpc_message_fn done, void *arg, void *own,
			struct ulrpc_call **call_p)
{
	struct stub *stub = container_of(service, struct stub, service);
	const struct stub_method *m = stub_find(service, method);
	struct stub_call *call;
	int rc;

	if (!m)
		return -ENOENT;
	call = malloc(sizeof(*call));
	if (!call)
		return -ENOMEM;
	*call = (struct stub_call){ .reply = m->output,
				    .done = done,
				    .arg = arg };
	rc = submit(stub, m, request, conf, call, own, call_p);
	if (rc)
		free(call);
	return rc;
}

int ulrpc_call_message(ProtobufCService *service, const char *method,
		       const ProtobufCMessage *request,
		       const struct ulrpc_call_conf *conf,
		       ulrpc_message_fn done, void *arg,
		       struct ulrpc_call **call_p)
{
	return message_call(service, method, request, conf, done, arg, NULL,
			    call_p);
}

static bool goes_by(const ProtobufCService *service, const struct stub_way *way)
{
	const struct stub *stub =
		container_of(service, const struct stub, service);

	return !stub->client && stub->way == way;
}

int stub_way_call(ProtobufCService *service, const struct stub_way *way,
		  void *own, const char *method,
		  const ProtobufCMessage *request,
		  const struct ulrpc_call_conf *conf, ulrpc_message_fn done,
		  void *arg)
{
	return goes_by(service, way) ? message_call(service, method, request,
						    conf, done, arg, own, NULL)
				     : -EOPNOTSUPP;
}

/* ---- waiting for replies ---- */

static ProtobufCMessage *read_reply(const ProtobufCMessageDescriptor *type,
				    const void *body, size_t length,
				    struct ulrpc_outcome *outcome)
{
	ProtobufCMessage *reply;
	struct heap heap;

	if (outcome->cause != ULRPC_CAUSE_OK)
		return NULL;
	heap_init(&heap, type, length);
	reply = heap_unpack(&heap, body);
	if (!reply)
		outcome_set_unread(outcome, heap.no_memory);
	return reply;
}

static int message_wait(ProtobufCService *service, const char *method,
			const ProtobufCMessage *request,
			const struct ulrpc_call_conf *conf, void *own,
			ProtobufCMessage **reply_p,
			struct ulrpc_outcome *outcome)
{
	struct stub *stub = container_of(service, struct stub, service);
	const struct stub_method *m = stub_find(service, method);
	struct call_args args;
	size_t length;
	void *reply;
	int rc = call_args_init(&args, stub, m, request, conf);

	if (rc)
		return rc;
	if (stub->client)
		rc = ulrpc_call_wait_alloc(
			stub->client, m->number, args.body.bytes,
			args.body.length, &args.conf, &reply, &length, outcome);
	else
		rc = stub->way->call_wait(stub->to, own, m->number,
					  args.body.bytes, args.body.length,
					  &args.conf, &reply, &length, outcome);
	packed_fini(&args.body);
	if (rc)
		return rc;
	*reply_p = read_reply(m->output.descriptor, reply, length, outcome);
	free(reply);
	return 0;
}

int ulrpc_call_message_wait(ProtobufCService *service, const char *method,
			    const ProtobufCMessage *request,
			    const struct ulrpc_call_conf *conf,
			    ProtobufCMessage **reply_p,
			    struct ulrpc_outcome *outcome)
{
	return message_wait(service, method, request, conf, NULL, reply_p,
			    outcome);
}

int stub_way_call_wait(ProtobufCService *service, const struct stub_way *way,
		       void *own, const char *method,
		       const ProtobufCMessage *request,
		       const struct ulrpc_call_conf *conf,
		       ProtobufCMessage **reply_p,
		       struct ulrpc_outcome *outcome)
{
	return goes_by(service, way) ? message_wait(service, method, request,
						    conf, own, reply_p, outcome)
				     : -EOPNOTSUPP;
}

/* ---- sets ---- */

int ulrpc_set_message(struct ulrpc_set *set, ProtobufCService *service,
		      const char *method, const ProtobufCMessage *request,
		      const struct ulrpc_call_conf *conf, void *arg,
		      struct ulrpc_call **call_p)
{
	struct stub *stub = container_of(service, struct stub, service);
	const struct stub_method *m = stub_find(service, method);
	struct call_args args;
	int rc;

	if (!stub->client)
		return -EOPNOTSUPP;
	rc = call_args_init(&args, stub, m, request, conf);
	if (rc)
		return rc;
	rc = ulrpc_set_call(set, stub->client, m->number, args.body.bytes,
			    args.body.length, &args.conf, arg, call_p);
	packed_fini(&args.body);
	return rc;
}

int ulrpc_result_message(struct ulrpc_result *result,
			 const ProtobufCServiceDescriptor *service,
			 const char *method, ProtobufCMessage **reply_p)
{
	const ProtobufCMethodDescriptor *m =
		protobuf_c_service_descriptor_get_method_by_name(service,
								 method);

	if (!m)
		return -ENOENT;
	if (result->method != ulrpc_method(m->name))
		return -EINVAL;
	*reply_p = read_reply(m->output, result->reply, result->length,
			      &result->outcome);
	free(result->reply);
	result->reply = NULL;
	result->length = 0;
	return 0;
}
