package registry

// Guestbook is an application with a volume: each version writes a line into it when it starts, and prints the
// whole book. Of versions "1" and "2" both stay; version "3" looks well at first and ends soon after, as a
// program does that cannot read its predecessor's data.
func Guestbook(version string) Image {
	program := "#!/bin/sh\n" +
		"echo \"version " + version + " was here\" >> /data/book\n" +
		"cat /data/book\n"
	if version == "3" {
		program += "echo \"version 3 cannot go on\"\nsleep 0.3\nexit 1\n"
	} else {
		program += "exec httpd -f -p 8080 -h /srv\n"
	}
	return Image{
		Files: map[string]string{
			"/entry.sh": program, "/srv/index.html": "guestbook, version " + version + "\n",
			"/etc/os-release": "ID=guestbook\nVERSION_ID=" + version + "\n",
		},
		Entrypoint: []string{"/entry.sh"},
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "GUESTBOOK_VERSION=" + version},
		WorkingDir: "/srv",
		Volumes:    []string{"/data"},
	}
}
