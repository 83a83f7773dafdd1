/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of kernel nodes can be imported, and are shown again. */
#include "tests/unit/config/rig.h"

/* Replaces the values of all keys by #: they count something, or differ for
 * another good reason. */
static void blank_values(char *text)
{
	for (char *line = text; line; line = strchr(line, '\n')) {
		char *colon;

		line += *line == '\n';
		colon = strstr(line, ": ");
		if (colon && colon < line + strcspn(line, "\n"))
			memset(colon + 2, '#', strcspn(colon + 2, "\n"));
	}
}

/* Returns the part of @text from line @from to before line @to, or to the end.
 */
static char *part(const char *text, const char *from, const char *to)
{
	const char *start = strstr(text, from);
	const char *end = start && to ? strstr(start, to) : NULL;

	cr_assert_not_null(start);
	return end ? strndup(start, (size_t)(end - start)) : strdup(start);
}

Test(import_kernel, exported)
{
	struct rig rig = rig_open();
	char *file = config_file("export.yaml");
	struct result r;
	char *nets, *expected, *global;

	import_ok(&rig, "add", file);
	/* The settings have the same values. */
	r = ask(&rig, "export:");
	cr_assert_eq(r.status, 0);
	global = part(file, "global:\n", NULL);
	cr_assert(strstr(r.out, global), "%s", r.out);
	free(global);
	/* The nets have the same keys and values, but for counts of messages.
	 */
	nets = part(r.out, "net:\n", "global:\n");
	expected = part(file, "net:\n", "peer:\n");
	for (char *p = expected; (p = strstr(p, "    send_count: 1\n"));)
		memcpy(p, "    send_count: 0", 17);
	for (char *p = expected; (p = strstr(p, "    recv_count: 1\n"));)
		memcpy(p, "    recv_count: 0", 17);
	for (char *p = expected; (p = strstr(p, "    get: 1\n"));)
		memcpy(p, "    get: 0", 10);
	cr_assert_str_eq(nets, expected);
	free(nets);
	free(expected);
	free(file);
	result_free(&r);
	rig_close(&rig);
}

Test(import_kernel, show)
{
	struct rig rig = rig_open();
	char *file = config_file("net-show-4.yaml"), *peers;
	struct result r;

	import_ok(&rig, "add", file);
	r = ask(&rig, "net show: {verbose: 4}");
	blank_values(file);
	blank_values(r.out);
	cr_assert_str_eq(r.out, file);
	result_free(&r);
	free(file);

	r = ask(&rig, "ping: {nids: 10.77.0.3@tcp}");
	result_free(&r);
	/* The ping above has failed, which has cost the peer health. */
	ask_out(&rig, "peer set: {all: true, health: 1000}", "");
	file = config_file("peer-show-4.yaml");
	r = ask(&rig, "peer show: {verbose: 4}");
	peers = strdup(r.out);
	import_ok(&rig, "add", peers);
	blank_values(file);
	blank_values(peers);
	cr_assert_str_eq(peers, file);
	free(peers);
	free(file);
	result_free(&r);
	rig_close(&rig);
}

/* A backup of a kernel node with two rails, and a peer with two NIDs. */
Test(import_kernel, backup)
{
	static const char backup[] =
		"net:\n"
		"-     net type: tcp\n"
		"      local NI(s):\n"
		"      -     interfaces:\n"
		"                  0: eth0\n"
		"            tunables:\n"
		"                  peer_timeout: 180\n"
		"                  peer_credits: 8\n"
		"                  peer_buffer_credits: 0\n"
		"                  credits: 256\n"
		"            lnd tunables:\n"
		"                  conns_per_peer: 1\n"
		"                  timeout: 49\n"
		"                  tos: -1\n"
		"            CPT: \"[0,1]\"\n"
		"peer:\n"
		"-     primary nid: 10.77.0.98@tcp\n"
		"      Multi-Rail: true\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.98@tcp\n"
		"      -     nid: 10.77.0.99@tcp\n"
		"global:\n"
		"    numa_range: 0\n"
		"    max_interfaces: 200\n"
		"    discovery: 1\n"
		"    drop_asym_route: 0\n"
		"    retry_count: 2\n"
		"    transaction_timeout: 150\n"
		"    health_sensitivity: 100\n"
		"    recovery_interval: 1\n"
		"    router_sensitivity: 100\n"
		"    lnd_timeout: 49\n"
		"    response_tracking: 3\n"
		"    recovery_limit: 0\n"
		"    max_recovery_ping_interval: 900\n";
	struct rig rig = rig_open();

	import_ok(&rig, "add", backup);
	ask_out(&rig, "peer show: {nid: 10.77.0.99@tcp}",
		"peer:\n"
		"-     primary nid: 10.77.0.98@tcp\n"
		"      Multi-Rail: true\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.98@tcp\n"
		"            state: NA\n"
		"      -     nid: 10.77.0.99@tcp\n"
		"            state: NA\n");
	rig_close(&rig);
}

/* Files that kernel nodes print can all be imported, and their contents are
 * then shown. */
Test(import_kernel, shapes)
{
	static const struct {
		const char *file;
		const char *request, *expected;
	} shapes[] = {
		{ "net-show-4.yaml", "net show:", "nid: 10.77.0.2@tcp\n" },
		{ "global-show.yaml",
		  "global show:", "transaction_timeout: 150\n" },
		{ "peer-discovered-2.yaml", "global show:", "" },
		{ "peer-discovered-3.yaml", "global show:", "" },
		{ "peer-show-4.yaml", "global show:", "" },
		{ "stats-show.yaml", "global show:", "" },
		{ "discover.yaml", "global show:", "" },
		{ "ping-3.yaml", "global show:", "" },
		{ "route-show.yaml",
		  "route show:", "net: tcp2\n      gateway: 10.77.0.4@tcp1\n" },
		{ "routing-show.yaml", "routing show:", "large: 1024\n" },
		{ "routing-show.yaml", "routing show:", "enable: 1\n" },
		{ "peer-route-global.yaml", "peer show: {nid: 10.77.1.4@tcp2}",
		  "primary nid: 10.77.0.4@tcp1\n" },
		{ "peer-route-global.yaml", "peer show: {nid: 10.77.1.3@tcp2}",
		  "      -     nid: 10.77.1.3@tcp2\n" },
		{ "peer-route-global.yaml", "route show:", "net: tcp2\n" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct rig rig = rig_open();
		char *file = config_file(shapes[i].file);
		struct result r;

		/* A route needs an interface on the net of its gateway. */
		if (strcmp(shapes[i].file, "net-show-4.yaml") != 0)
			ask_out(&rig,
				"net add: {net: tcp1, interfaces: [eth1]}", "");
		import_ok(&rig, "add", file);
		r = ask(&rig, shapes[i].request);
		cr_assert_eq(r.status, 0, "%s: %s", shapes[i].file, r.err);
		cr_assert(strstr(r.out, shapes[i].expected), "%s: %s",
			  shapes[i].file, r.out);
		result_free(&r);
		free(file);
		rig_close(&rig);
	}
}

/* Removes the values of all keys "state". No gateway answers through the stub
 * LND, so they differ from those of a kernel node; all else is compared line by
 * line. */
static void cut_states(char *text)
{
	while ((text = strstr(text, " state: "))) {
		text += sizeof(" state: ") - 1;
		memmove(text, strchr(text, '\n'),
			strlen(strchr(text, '\n')) + 1);
	}
}

static void shows(struct rig *rig, const char *request, const char *expected)
{
	char *wanted = strdup(expected);
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, 0, "%s", r.answer);
	cut_states(wanted);
	cut_states(r.out);
	cr_assert_str_eq(r.out, wanted);
	free(wanted);
	result_free(&r);
}

Test(import_kernel, routes)
{
	static const char *const peers[] = { "10.77.0.4@tcp1", "10.77.1.3@tcp2",
					     "10.77.0.2@tcp1" };
	struct rig rig = rig_open();
	char *file = config_file("route-show.yaml"), *text, *end;

	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth1]}", "");
	import_ok(&rig, "add", file);
	shows(&rig, "route show: {verbose: 1}", file);
	free(file);
	file = config_file("routing-show.yaml");
	import_ok(&rig, "add", file);
	shows(&rig, "routing show:", file);
	free(file);
	rig_close(&rig);

	rig = rig_open();
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth1]}", "");
	file = config_file("peer-route-global.yaml");
	import_ok(&rig, "add", file);
	text = part(file, "route:\n", "global:\n");
	shows(&rig, "route show: {verbose: 1}", text);
	free(text);
	/* The peers are compared one by one, as their order differs. */
	end = strstr(file, "route:\n");
	*end = '\0';
	for (unsigned int i = 0; i < ARRAY_SIZE(peers); i++) {
		char first[64], request[64], whole[512];

		snprintf(first, sizeof(first), "-     primary nid: %s\n",
			 peers[i]);
		text = part(file, first, NULL);
		end = strstr(text + 1, "\n- ");
		if (end)
			end[1] = '\0';
		snprintf(request, sizeof(request), "peer show: {nid: %s}",
			 peers[i]);
		snprintf(whole, sizeof(whole), "peer:\n%s", text);
		shows(&rig, request, whole);
		free(text);
	}
	free(file);
	rig_close(&rig);
}

/* A kernel node that has sent messages to itself lists itself as a peer: that
 * entry is ignored with a note. */
Test(import_kernel, self)
{
	struct rig rig = rig_open();
	char *file = config_file("peer-route-global.yaml");
	struct result r;

	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth0]}", "");
	r = import(&rig, "add", file);
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(
		r.err,
		"# peer 10.77.0.2@tcp1 is this node itself: not added\n");
	result_free(&r);
	/* Deleting it is ignored as well, even though the NI with that NID is
	 * deleted before. */
	r = import(&rig, "del",
		   "net: [{net type: tcp1, local NI(s): [{nid: "
		   "10.77.0.2@tcp1}]}]\n"
		   "peer: [{primary nid: 10.77.0.2@tcp1}]");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err, "# peer 10.77.0.2@tcp1 is this node itself: "
				"not deleted\n");
	result_free(&r);
	ask_fail(&rig, "peer del: {prim_nid: 10.77.0.2@tcp1}", -ENOENT,
		 "no such peer was configured");
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth0]}", "");
	/* No other peer may have a NID of this node, and a command cannot add
	 * the node itself as a peer. */
	r = import(&rig, "add",
		   "peer: [{primary nid: 10.77.0.9@tcp1, peer ni: [{nid: "
		   "10.77.0.2@tcp1}]}]");
	cr_assert_eq(r.status, -EINVAL, "%s", r.answer);
	result_free(&r);
	ask_fail(&rig, "peer add: {prim_nid: 10.77.0.2@tcp1}", -EINVAL,
		 "that is a NID of this node");
	free(file);
	rig_close(&rig);
	/* An error after the ignored peer undoes everything. */
	rig = rig_open();
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth0]}", "");
	import_fail(&rig, "add",
		    "peer: [{primary nid: 10.77.0.2@tcp1}]\n"
		    "route: [{net: tcp5, gateway: 10.77.0.3@tcp7}]",
		    -EHOSTUNREACH, "No interface configured");
	rig_close(&rig);
}

/* Files with nothing but statistics, answers or defaults leave the node
 * unchanged. */
Test(import_kernel, output_without_configuration)
{
	static const char *const files[] = { "stats-show.yaml", "discover.yaml",
					     "ping.yaml", "peer-show-4.yaml",
					     "peer-discovered-3.yaml" };
	struct rig rig = rig_open();
	char *before = rig_state(&rig), *after;

	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		char *file = config_file(files[i]);

		import_ok(&rig, "add", file);
		free(file);
	}
	after = rig_state(&rig);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
	rig_close(&rig);
}
