package pvesim

// resizeContainer grows a volume; everything but the growing is checked before the answer.
func resizeContainer(k *call) (any, error) {
	g, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if err := checkDigest(k, g); err != nil {
		return nil, err
	}
	key := k.str("disk")
	value, ok := g.conf.kv[key]
	if !ok {
		return nil, &apiError{status: 500, text: "format error", fields: map[string]string{
			"mp": textMissing, "volume": textMissing,
		}}
	}
	m := parseMount(key, value)
	sid, _, _ := splitVolID(m.volume())
	owner, _ := k.c.volumeOwner(m.volume())
	if owner != g.vmid {
		return nil, die("can't resize mount point owned by another container (%d)", owner)
	}
	if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	if _, err := k.c.storageActive(sid, g.node); err != nil {
		return nil, err
	}
	now, format, ok := k.c.volumeSize(g.node, m.volume())
	if !ok {
		return nil, die("Could not determine current size of volume '%s'", m.volume())
	}
	want := wantedSize(k.str("size"), now)
	switch {
	case want < now:
		return nil, die("unable to shrink disk size")
	case want == now:
		return nil, die("disk is already at specified size")
	}
	return k.startTask("resize", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		if err := k.c.resize(g.node, m.volume(), want); err != nil {
			return err
		}
		t.checkpoint("resized")
		size, _, _ := k.c.volumeSize(g.node, m.volume())
		g.conf.kv[key] = m.setSize(size).String()
		t.logf("Image resized.")
		if v := k.c.volume(g.node, m.volume()); v != nil {
			if at, stuck := k.c.stuckFS[v.identity]; stuck {
				// only a line in the log tells; the task is well all the same
				k.c.stuckFS[v.identity] = max(at, now)
				t.logf("Failed to update the container's filesystem: command 'resize2fs' failed: exit code 1\n")
				return nil
			}
		}
		if format == "raw" {
			t.logf("resize2fs 1.47.2 (1-Jan-2025)")
		}
		return nil
	}), nil
}
