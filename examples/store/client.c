/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: client SERVERS put NAME <FILE | get NAME >FILE | list PREFIX |
 *        load NAME
 * SERVERS is a name of all servers, such as file:///etc/servers. Each of them
 * has all objects; a put is good if most take it. One that was away has old
 * objects until the next put. load gets an object until that fails. */
#include <sys/time.h>
#include <ulnet/names.h>
#include <ulnet/replicas.h>
#include "node.h"

#define SECOND	    UINT64_C(1000000) /* us */
#define DEADLINE    (30 * SECOND)
#define SERVERS_MAX 9
#define STORE	    &store__store__descriptor, store__store__options, DEADLINE

static struct {
	struct ulrpc *rpc;
	ProtobufCService *any; /* whichever server is there */
	ProtobufCService *each[SERVERS_MAX];
	unsigned int n;
} store;

static void store_open(const char *target)
{
	struct ulrpc_replicas_conf conf;
	struct ulrpc_replicas *all;
	struct ulnet_name_answer *answer;

	store.rpc = open_node(NULL, "0");
	ulrpc_replicas_conf_init(&conf);
	conf.client.target = target;
	conf.client.service = store__store__descriptor.name;
	conf.client.wait_for_ready = ULRPC_WAIT_NOT; /* if it is not there */
	check(ulrpc_replicas_open(store.rpc, &conf, &all), target);
	check(ulrpc_replicas_stub_new(all, STORE, &store.any), "stub");
	check(lnet_name_lookup_wait(ulrpc_node(store.rpc), target, 5 * SECOND,
				    &answer, NULL),
	      target);
	if (!answer->n)
		errx(1, "%s: %s", target, answer->why);
	conf.client.target = NULL, conf.client.nnids = 1;
	for (; store.n < answer->n && store.n < SERVERS_MAX; store.n++) {
		const struct ulnet_address *at = &answer->addresses[store.n];
		struct ulrpc_client *client;

		if (at->port)
			lnet_peer_port_set(ulrpc_node(store.rpc), &at->nid,
					   at->port);
		conf.client.nids = &at->nid;
		check(ulrpc_client_open(store.rpc, &conf.client, &client),
		      "client");
		check(ulrpc_stub_new(client, STORE, &store.each[store.n]),
		      "stub");
	}
	free(answer);
}

static struct ulrpc_bulk *lend(const struct iovec *data,
			       enum ulrpc_bulk_access access)
{
	struct ulrpc_bulk_conf conf = { data, 1, access, 0, 0 };
	struct ulrpc_bulk *bulk;

	check(ulrpc_bulk_new(store.rpc, &conf, &bulk), "bulk");
	return bulk;
}

static int complain(struct ulrpc_outcome *end, const char *what)
{
	lnet_text_clean(end->text); /* it is the server's */
	warnx("%s: %s: %s", what, ulrpc_status_name(ulrpc_status_of(end)),
	      end->text);
	return 1;
}

/* ---- get ---- */

/* Gets an object from @server into new memory. */
static bool get_from(ProtobufCService *server, const char *name,
		     struct iovec *data, struct ulrpc_outcome *end)
{
	Store__Object which = STORE__OBJECT__INIT, *o, *got = NULL;
	Store__Transfer t = STORE__TRANSFER__INIT;
	struct ulrpc_bulk *bulk;
	bool good;

	which.name = (char *)name;
	check(store__store__stat_wait(server, &which, &o, end), "Stat");
	if (!o)
		return false;
	data->iov_base = malloc(o->size + 1);
	data->iov_len = o->size;
	bulk = lend(data, ULRPC_BULK_SINK);
	t.object = o;
	t.data = ulrpc_bulk_field(bulk);
	check(store__store__get_wait(server, &t, &got, end), "Get");
	ulrpc_bulk_close_wait(bulk);
	good = got;
	if (!good)
		free(data->iov_base);
	store__object__free_unpacked(o, NULL);
	store__object__free_unpacked(got, NULL);
	return good;
}

/* Asks any server, and if that does not have the object, each. */
static bool get(const char *name, struct iovec *data)
{
	struct ulrpc_outcome end;
	bool got = get_from(store.any, name, data, &end);

	for (unsigned int i = 0; i < store.n && !got; i++)
		if (ulrpc_status_of(&end) == ULRPC_STATUS_NOT_FOUND)
			got = get_from(store.each[i], name, data, &end);
	if (!got)
		complain(&end, name);
	return got;
}

static int get_to_output(const char *name)
{
	struct iovec data;

	if (!get(name, &data))
		return 1;
	if (fwrite(data.iov_base, 1, data.iov_len, stdout) != data.iov_len ||
	    fflush(stdout))
		err(1, "output");
	free(data.iov_base);
	return 0;
}

/* Returns only if that fails. */
static int load(const char *name)
{
	struct iovec first, data;

	if (!get(name, &first))
		return 1;
	for (unsigned int gets = 1; get(name, &data); gets++) {
		if (data.iov_len != first.iov_len ||
		    memcmp(data.iov_base, first.iov_base, data.iov_len))
			errx(1, "get %u: other data", gets);
		free(data.iov_base);
		warnx("%u gets", gets);
	}
	return 1;
}

/* ---- put ---- */

struct put {
	ProtobufCService *server;
	struct ulrpc_bulk *bulk;
	struct ulrpc_context *context; /* gets the details of a failure */
};

static void put_begin(struct put *put, struct ulrpc_set *set, Store__Object *o,
		      const struct iovec *data)
{
	Store__Transfer t = STORE__TRANSFER__INIT;
	struct ulrpc_call_conf conf;

	put->bulk = lend(data, ULRPC_BULK_SOURCE);
	t.object = o;
	t.data = ulrpc_bulk_field(put->bulk);
	check(ulrpc_context_new(&put->context), "context");
	check(ulrpc_stub_conf(put->server, "Put", &conf), "Put");
	conf.context = put->context;
	check(ulrpc_set_message(set, put->server, "Put", &t.base, &conf, put,
				NULL),
	      "Put");
}

/* Has the server taken the object? Else says why. */
static bool put_end(struct ulrpc_result *result)
{
	const struct put *put = result->arg;
	ProtobufCMessage *details;
	Store__Object *o;

	check(store__store__put_result(result, &o), "Put");
	if (o) {
		store__object__free_unpacked(o, NULL);
		return true;
	}
	complain(&result->outcome, "a server");
	if (!ulrpc_context_details_message(
		    put->context, &store__quota__descriptor, &details)) {
		const Store__Quota *quota = (const Store__Quota *)details;

		warnx("it has room for %" PRIu64, quota->limit - quota->used);
		protobuf_c_message_free_unpacked(details, NULL);
	}
	return false;
}

static int put(Store__Object *o, const struct iovec *data)
{
	struct put puts[SERVERS_MAX];
	struct ulrpc_result result;
	struct ulrpc_set *set;
	unsigned int good = 0;

	check(ulrpc_set_new(store.rpc, &set), "set");
	for (unsigned int i = 0; i < store.n; i++) {
		puts[i].server = store.each[i];
		put_begin(&puts[i], set, o, data);
	}
	ulrpc_set_wait(set, ULRPC_SET_ALL, DEADLINE);
	while (!ulrpc_set_next(set, &result))
		good += put_end(&result);
	ulrpc_set_free(set);
	for (unsigned int i = 0; i < store.n; i++) {
		ulrpc_bulk_close_wait(puts[i].bulk);
		ulrpc_context_free(puts[i].context);
	}
	warnx("%s: %zu bytes, at %u of %u servers", o->name, data->iov_len,
	      good, store.n);
	return good <= store.n / 2;
}

static int put_from_input(char *name)
{
	Store__Object o = STORE__OBJECT__INIT;
	struct timeval now;
	struct stat st;
	struct iovec data;
	int rc;

	gettimeofday(&now, NULL);
	o.name = name;
	o.version = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_usec;
	if (fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode))
		errx(1, "the input is no file");
	data.iov_len = (size_t)st.st_size;
	data.iov_base = malloc(data.iov_len + 1);
	if (fread(data.iov_base, 1, data.iov_len, stdin) != data.iov_len)
		err(1, "input");
	rc = put(&o, &data);
	free(data.iov_base);
	return rc;
}

static int list(char *prefix)
{
	Store__Object begin = STORE__OBJECT__INIT;
	struct ulrpc_outcome end;
	Store__Objects *all;

	begin.name = prefix;
	check(store__store__list_wait(store.any, &begin, &all, &end), "List");
	if (!all)
		return complain(&end, "List");
	for (size_t i = 0; i < all->n_objects; i++)
		printf("%10" PRIu64 " %s\n", all->objects[i]->size,
		       all->objects[i]->name);
	store__objects__free_unpacked(all, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	int rc = -1;

	if (argc == 4) {
		store_open(argv[1]);
		if (!strcmp(argv[2], "put"))
			rc = put_from_input(argv[3]);
		else if (!strcmp(argv[2], "get"))
			rc = get_to_output(argv[3]);
		else if (!strcmp(argv[2], "list"))
			rc = list(argv[3]);
		else if (!strcmp(argv[2], "load"))
			rc = load(argv[3]);
		lnet_close(ulrpc_node(store.rpc)); /* and all that is on it */
	}
	if (rc < 0)
		errx(2, "usage: client SERVERS put|get|list|load NAME");
	return rc;
}
