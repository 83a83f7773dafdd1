/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of lnetctl, and the requests that they become. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "tools/lnetctl/command.h"

struct row {
	const char *line;
	int status;
	const char *request; /* NULL: none, as there is an error */
};

static const struct row rows[] = {
	{ "lnet configure", 0, "lnet configure: {}\n" },
	{ "lnet configure -a --large", 0,
	  "lnet configure: { all: true, large: true }\n" },
	{ "lnet unconfigure", 0, "lnet unconfigure: {}\n" },
	{ "net add --net tcp --if eth0", 0,
	  "net add: { net: \"tcp\", interfaces: [\"eth0\"] }\n" },
	{ "net add -n tcp -i 'eth0[0,1], eth1,,'", 0,
	  "net add: { net: \"tcp\", interfaces: "
	  "[\"eth0[0,1]\", \"eth1\"] }\n" },
	{ "net add --net tcp --if ''", 0,
	  "net add: { net: \"tcp\", interfaces: [] }\n" },
	{ "net add --net=tcp1 -t 1 -c 2 -b 3 -r 4 -s [0] -m 5 -S -1 -k", 0,
	  "net add: { net: \"tcp1\", peer_timeout: 1, peer_credits: 2, "
	  "peer_buffer_credits: 3, credits: 4, cpts: \"[0]\", "
	  "conns_per_peer: 5, tos: -1 }\n" },
	{ "net add --nid 10.0.0.1@tcp", 0,
	  "net add: { nid: \"10.0.0.1@tcp\" }\n" },
	{ "net add --ip2net 'tcp1 10.1.*.*'", 0,
	  "net add: { ip2net: \"tcp1 10.1.*.*\" }\n" },
	/* An option may be abbreviated, and given twice; a value that is text
	 * is quoted. */
	{ "net add --net tcp --peer-c 5 --peer-c 6", 0,
	  "net add: { net: \"tcp\", peer_credits: 6 }\n" },
	{ "net add --net 'a\"}\\' --if '], x: [#'", 0,
	  "net add: { net: \"a\\\"}\\\\\", interfaces: "
	  "[\"]\", \"x: [#\"] }\n" },
	{ "net add --net tcp --peer 5", 234, NULL },
	{ "net add --if eth0", 234, NULL },
	{ "net add", 234, NULL },
	{ "net add --net", 234, NULL },
	{ "net add --net tcp extra", 234, NULL },
	{ "net add --net tcp --nonsense", 234, NULL },
	{ "net add --net tcp --credits 1x", 255, NULL },
	{ "net add --net tcp --credits ''", 255, NULL },
	{ "net add --net tcp --credits -", 255, NULL },
	{ "net add --net tcp --credits 0x10", 255, NULL },
	{ "net add --net tcp --credits 99999999999999999999", 255, NULL },
	{ "net add --net tcp --credits ' 1'", 255, NULL },
	{ "net del --net tcp", 0, "net del: { net: \"tcp\" }\n" },
	{ "net del --net tcp --if eth0,eth1", 0,
	  "net del: { net: \"tcp\", interfaces: [\"eth0\", \"eth1\"] }\n" },
	{ "net del --if eth0", 234, NULL },
	{ "net show", 0, "net show: {}\n" },
	{ "net show -v", 0, "net show: { verbose: 1 }\n" },
	{ "net show -v2", 0, "net show: { verbose: 2 }\n" },
	{ "net show --verbose 2 --net tcp", 0,
	  "net show: { net: \"tcp\", verbose: 2 }\n" },
	{ "net show --verbose --net tcp", 0,
	  "net show: { net: \"tcp\", verbose: 1 }\n" },
	{ "net show --verbose=x", 255, NULL },
	{ "net show -v x", 234, NULL },
	{ "peer show --nid 1.2.3.4@tcp -v 3", 0,
	  "peer show: { nid: \"1.2.3.4@tcp\", verbose: 3 }\n" },
	{ "peer list", 0, "peer list: {}\n" },
	{ "peer list x", 234, NULL },
	{ "import --ignore_errors -d x", 0,
	  "import: { mode: \"del\", ignore_errors: true }\n" },
	{ "global show", 0, "global show: {}\n" },
	{ "stats show", 0, "stats show: {}\n" },
	{ "stats reset", 0, "stats reset: {}\n" },
	{ "rpc show", 0, "rpc show: {}\n" },
	{ "rpc show -v", 0, "rpc show: { verbose: 1 }\n" },
	{ "rpc show x", 234, NULL },
	{ "rpc reset", 0, "rpc reset: {}\n" },
	{ "set retry_count 3", 0, "set: { retry_count: 3 }\n" },
	{ "set recovery_limit -1", 0, "set: { recovery_limit: -1 }\n" },
	{ "set --nonsense", 234, NULL },
	{ "set retry_count", 234, NULL },
	{ "set retry_count 3 4", 234, NULL },
	{ "set retry_count x", 0, "set: { retry_count: \"x\" }\n" },
	{ "set nonsense 3", 255, NULL },
	{ "ping 1.2.3.4@tcp", 0, "ping: { nids: [\"1.2.3.4@tcp\"] }\n" },
	{ "ping a@ b@ -t 3 --source c", 0,
	  "ping: { source: \"c\", timeout: 3, nids: [\"a@\", \"b@\"] }\n" },
	{ "ping -- -x", 0, "ping: { nids: [\"-x\"] }\n" },
	{ "ping", 234, NULL },
	{ "ping a --timeout soon", 255, NULL },
	{ "export --backup file", 0, "export: { backup: true }\n" },
	{ "export a b", 234, NULL },
	{ "fault drop add --source '*' --dest 1.2.3.4@tcp --rate 10", 0,
	  "fault: { action: \"add\", rule_type: \"drop\", source: \"*\", "
	  "dest: \"1.2.3.4@tcp\", rate: 10 }\n" },
	{ "fault drop -s a -d b -i 2 -p 4,26 -m PUT -m GET,ACK -o c add -n", 0,
	  "fault: { action: \"add\", rule_type: \"drop\", source: \"a\", "
	  "dest: \"b\", local_nid: \"c\", portal: [\"4\", \"26\"], "
	  "message: [\"PUT\", \"GET\", \"ACK\"], interval: \"2\", "
	  "random: true }\n" },
	{ "fault error add -x -e local_error -e random -e remote_error", 0,
	  "fault: { action: \"add\", rule_type: \"error\", drop_all: true, "
	  "health_error: [\"local_error\", \"random\", \"remote_error\"] "
	  "}\n" },
	{ "fault delay add -r 1 --latency 0.5", 0,
	  "fault: { action: \"add\", rule_type: \"delay\", rate: 1, "
	  "latency: \"0.5\" }\n" },
	{ "fault duplicate del --all", 0,
	  "fault: { action: \"del\", rule_type: \"duplicate\", all: true "
	  "}\n" },
	{ "fault corrupt show", 0,
	  "fault: { action: \"show\", rule_type: \"corrupt\" }\n" },
	{ "fault --rule_type drop add -r 2", 0,
	  "fault: { action: \"add\", rule_type: \"drop\", rate: 2 }\n" },
	{ "fault reset --rule_type delay", 0,
	  "fault: { action: \"reset\", rule_type: \"delay\" }\n" },
	{ "fault drop", 234, NULL },
	{ "fault", 234, NULL },
	{ "fault drop add del", 234, NULL },
	{ "fault drop add --latency 1", 234, NULL },
	{ "fault delay add -e local_error", 234, NULL },
	{ "fault drop add --rate often", 255, NULL },
	/* To these requests the text of the file is added later. */
	{ "import --del file", 0, "import: { mode: \"del\" }\n" },
	{ "import -a -e", 0, "import: { mode: \"exec\" }\n" },
	{ "import", 0, "import: {}\n" },
};

static void check_row(const struct row *row)
{
	char line[256], **words;
	struct command_args args;
	const struct command *command;
	struct request r;
	bool sub;
	int n, status;

	strcpy(line, row->line);
	n = words_split(line, &words);
	cr_assert_gt(n, 0, "%s", row->line);
	command = command_find(n, words, &sub);
	cr_assert_not_null(command, "%s", row->line);
	status = command_parse(command, "lnetctl x", n - !!command->sub,
			       words + !!command->sub, &args, &r);
	cr_assert_eq(status, row->status, "%s: status %d", row->line, status);
	cr_assert(!args.help, "%s", row->line);
	if (!status) {
		cr_assert_eq(request_end(&r), 0, "%s", row->line);
		cr_assert_str_eq(r.text, row->request, "%s: %s", row->line,
				 r.text);
	}
	request_free(&r);
	free(words);
}

Test(command, requests)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

Test(command, not_utf8)
{
	char *argv[] = { "add", "--net", "tcp\xff", NULL };
	char *name[] = { "net", "add", NULL };
	struct command_args args;
	struct request r;
	bool sub;

	cr_assert_eq(command_parse(command_find(2, name, &sub), "x", 3, argv,
				   &args, &r),
		     0);
	cr_assert_eq(request_end(&r), -EILSEQ);
	request_free(&r);
}

/* ---- commands that programs have added ---- */

static const struct row added_rows[] = {
	{ "jobs show", 0, "\"jobs show\": {}\n" },
	{ "jobs", 0, "\"jobs\": {}\n" },
	{ "jobs show --of me --verbose --max=5 --min -5", 0,
	  "\"jobs show\": { \"of\": \"me\", \"verbose\": true, "
	  "\"max\": \"5\", \"min\": \"-5\" }\n" },
	{ "jobs --a= --b", 0, "\"jobs\": { \"a\": \"\", \"b\": true }\n" },
	{ "'x: {}' '--y: [' 'z\"'", 0, "\"x: {}\": { \"y: [\": \"z\\\"\" }\n" },
	{ "jobs show -v", 234, NULL },
	{ "jobs show --of me you", 234, NULL },
	{ "jobs --", 234, NULL },
	{ "jobs --=5", 234, NULL },
};

Test(command, added)
{
	for (size_t i = 0; i < sizeof(added_rows) / sizeof(*added_rows); i++) {
		const struct row *row = &added_rows[i];
		char *line = strdup(row->line), **words;
		char name[LNET_CONTROL_NAME_MAX + 1];
		int n = words_split(line, &words);
		struct request r;

		cr_assert(added_name(n, words, name), "%s", row->line);
		cr_assert_eq(added_parse(name, n, words, &r), row->status, "%s",
			     row->line);
		if (!row->status) {
			cr_assert_eq(request_end(&r), 0);
			cr_assert_str_eq(r.text, row->request);
		}
		request_free(&r);
		free(words);
		free(line);
	}
}

Test(command, added_names_are_not_longer_than_a_program_s)
{
	char name[LNET_CONTROL_NAME_MAX + 1],
		longest[LNET_CONTROL_NAME_MAX + 1];
	char *const words[] = { "x", longest, NULL };

	memset(longest, 'y', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	cr_assert(added_name(1, words + 1, name));
	cr_assert_str_eq(name, longest);
	cr_assert(!added_name(2, words, name));
	longest[sizeof(longest) - 3] = 0;
	cr_assert(added_name(2, words, name));
	cr_assert_eq(strlen(name), LNET_CONTROL_NAME_MAX);
	cr_assert(!added_name(0, words, name));
}

Test(command, find)
{
	char *net[] = { "net", NULL }, *bad[] = { "net", "x", NULL };
	char *none[] = { "ne", NULL }, *ping[] = { "ping", "x", NULL };
	bool sub;

	cr_assert_null(command_find(1, net, &sub));
	cr_assert(sub);
	cr_assert_null(command_find(2, bad, &sub));
	cr_assert(sub);
	cr_assert_null(command_find(1, none, &sub));
	cr_assert(!sub);
	cr_assert_str_eq(command_find(2, ping, &sub)->name, "ping");
}

/* Every line of the table of commands is sound: names and letters of options
 * are unique, and each command and option has its help. */
Test(command, table)
{
	for (const struct command *c = commands; c->name; c++) {
		char *argv[] = { "x", "--help", NULL };
		struct command_args args;
		struct request r;

		cr_assert_not_null(c->help);
		for (unsigned int i = 0; command_row(c, i); i++) {
			const struct option_row *o = command_row(c, i);

			cr_assert_not_null(o->help);
			cr_assert(o->kind != OPTION_OWN || o->key ||
				  o->own == GIVEN_UNUSED);
			for (unsigned int k = 0; k < i; k++) {
				const struct option_row *p = command_row(c, k);

				cr_assert_str_neq(o->name, p->name);
				cr_assert(!o->letter || o->letter != p->letter);
			}
		}
		cr_assert_eq(command_parse(c, "x", 2, argv, &args, &r), 0);
		cr_assert(args.help);
		request_free(&r);
	}
}
