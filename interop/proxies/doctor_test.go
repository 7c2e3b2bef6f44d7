//go:build unix

package proxies

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// nginx, haproxy and caddy have the configurations of docs/proxies.md.
var (
	nginx = &proxy{
		command: "nginx",
		args: func(file, dir string) []string {
			return []string{"-p", dir, "-c", file, "-e", "stderr", "-g", "daemon off;"}
		},
		config: `
worker_processes 1;
pid DIR/pid;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
	large_client_header_buffers 4 64k;
	client_body_buffer_size 256k;
	GLOBAL_FAULT
	server {
		listen ADDR;
		location / {
			proxy_pass http://SERVER;
			proxy_set_header Host $http_host;
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection $http_connection;
			proxy_read_timeout 1h;
			FAULT
		}
	}
}`,
	}
	haproxy = &proxy{
		command: "haproxy",
		args:    func(file, dir string) []string { return []string{"-db", "-f", file} },
		config: `
global
	tune.bufsize 98304
	tune.maxrewrite 16384
	GLOBAL_FAULT
defaults
	mode http
	timeout connect 5s
	timeout client 1h
	timeout server 1h
	timeout tunnel 1h
	FRONT_FAULT
frontend watches
	bind ADDR
	default_backend servers
backend servers
	FAULT
	server one SERVER
`,
	}
	caddy = &proxy{
		command: "caddy",
		args:    func(file, dir string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
		config: `
{
	admin off
	auto_https off
	servers {
		max_header_size 64KB
		GLOBAL_FAULT
	}
}
http://127.0.0.1:PORT {
	bind 127.0.0.1
	FRONT_FAULT
	reverse_proxy SERVER {
		FAULT
	}
}
`,
	}
)

var proxies = map[string]*proxy{"nginx": nginx, "HAProxy": haproxy, "Caddy": caddy}

func TestDocumentedSettingsHaveNoProblem(t *testing.T) {
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			for check, f := range examine(t, p.start(t, startServer(t), nil), "5s") {
				t.Errorf("%s: %s", check, f.Text)
			}
		})
	}
}

func TestDoctorNamesEachFault(t *testing.T) {
	for _, c := range []struct {
		proxy  string
		faults map[string]string
		checks []string // exactly the checks that must find a problem
		remedy string   // part of the advice for this proxy
	}{
		// Even with proxy_buffering, nginx forwards small parts at once. Its compressor holds them
		// back.
		{
			"nginx",
			map[string]string{
				"FAULT": "proxy_ignore_headers X-Accel-Buffering; gzip on; gzip_proxied any; gzip_min_length 1; gzip_types application/json;",
			},
			[]string{"buffering", "compression"},
			"proxy_buffering off",
		},
		{
			"nginx",
			map[string]string{"FAULT": "gzip on; gzip_proxied any; gzip_min_length 1; gzip_types application/json;"},
			[]string{"compression"},
			"gzip off",
		},
		{
			"nginx",
			map[string]string{"FAULT": "proxy_set_header Upgrade ''; proxy_set_header Connection '';"},
			[]string{"upgrade", "websocket"},
			"proxy_set_header Upgrade",
		},
		{
			"nginx",
			map[string]string{"FAULT": "proxy_set_header Host $host;"},
			[]string{"host"},
			"proxy_set_header Host $http_host",
		},
		{
			"nginx",
			map[string]string{"FAULT": "proxy_read_timeout 5s;"},
			[]string{"idle chunked", "idle websocket"},
			"proxy_read_timeout 1h",
		},
		{
			"nginx",
			map[string]string{"GLOBAL_FAULT": "large_client_header_buffers 4 8k;"},
			[]string{"headers", "query"},
			"large_client_header_buffers 4 64k",
		},
		{
			"HAProxy",
			map[string]string{"FAULT": "http-response wait-for-body time 4s at-least 4096"},
			[]string{"buffering", "chunked"},
			"wait-for-body",
		},
		{
			"HAProxy",
			map[string]string{"FAULT": "http-request del-header Upgrade"},
			[]string{"upgrade", "websocket"},
			"del-header",
		},
		{
			"HAProxy",
			map[string]string{"FRONT_FAULT": "timeout server 5s"},
			[]string{"idle chunked"},
			"timeout server 1h",
		},
		{
			"HAProxy",
			map[string]string{"GLOBAL_FAULT": "tune.bufsize 16384\n\ttune.maxrewrite 1024"},
			[]string{"headers", "query"},
			"tune.bufsize",
		},
		{
			"Caddy",
			map[string]string{"FAULT": "buffer_responses"},
			[]string{"buffering", "chunked", "websocket"},
			"flush_interval -1",
		},
		{"Caddy", map[string]string{
			"FRONT_FAULT": "encode {\n\t\tgzip\n\t\tminimum_length 1\n\t}",
			"FAULT":       "header_down -Cache-Control",
		}, []string{"compression", "buffering"}, "encode"},
		{"Caddy", map[string]string{"FAULT": "header_up -Upgrade"}, []string{"upgrade", "websocket"}, "header_up"},
		{
			"Caddy",
			map[string]string{"FAULT": "transport http {\n\t\t\tread_timeout 5s\n\t\t}"},
			[]string{"idle chunked", "idle websocket"},
			"read_timeout",
		},
		{"Caddy", map[string]string{"GLOBAL_FAULT": "max_header_size 8KB"}, []string{"headers"}, "max_header_size"},
	} {
		t.Run(c.proxy+"/"+c.checks[0], func(t *testing.T) {
			t.Parallel()
			p := *proxies[c.proxy]
			p.config = withoutDefaults(p.config, c.faults)
			found := examine(t, p.start(t, startServer(t), c.faults), "12s")
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(slices.Values(c.checks))) {
				t.Errorf("problems of %v, want of %v", got, c.checks)
			}
			f := found[c.checks[0]]
			if !slices.ContainsFunc(f.Remedies, func(r struct{ Program, Settings string }) bool {
				return r.Program == c.proxy && strings.Contains(r.Settings, c.remedy)
			}) {
				t.Errorf("remedies %v, want %q for %s", f.Remedies, c.remedy, c.proxy)
			}
		})
	}
}

// withoutDefaults removes from config the settings that faults also contain, because a proxy may
// refuse a setting that occurs twice.
func withoutDefaults(config string, faults map[string]string) string {
	lines := strings.Split(config, "\n")
	for _, fault := range faults {
		for part := range strings.FieldsFuncSeq(fault, func(r rune) bool { return r == ';' || r == '\n' }) {
			words := strings.Fields(part)
			name := words[0]
			if name == "proxy_set_header" || name == "timeout" {
				name += " " + words[1]
			}
			lines = slices.DeleteFunc(lines,
				func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), name+" ") })
		}
	}
	return strings.Join(lines, "\n")
}
