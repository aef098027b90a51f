package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
	"time"
)

// Progress is how far a fetch has come, in bytes of layers. What had to be fetched again counts once.
type Progress struct{ Done, Total int64 }

// jobs is how many blobs are fetched at a time. With chunk it decides what a fetch takes of memory, whatever the image.
const (
	jobs  = 3
	chunk = 256 << 10
)

// Fetch downloads an image by digest into an archive in folder; "" stands for the system's temporary folder. Every blob is
// verified, a damaged one fetched once more. progress, when set, is called now and then, never twice at a time.
func (r *Resolver) Fetch(ctx context.Context, image Image, folder string, progress func(Progress)) (*Archive, error) {
	op := "fetch " + image.String()
	archive, err := r.fetch(ctx, op, image, folder, progress)
	if err != nil {
		return nil, r.translate(ctx, op, image.Reference, err)
	}
	return archive, nil
}

func (r *Resolver) fetch(ctx context.Context, op string, image Image, folder string, progress func(Progress)) (*Archive, error) {
	c, err := r.content(ctx, op, image)
	if err != nil {
		return nil, err
	}
	config, err := r.config(ctx, op, image)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(c, config)
	if err != nil {
		return nil, err
	}
	repo, err := r.repository(ctx, image.Reference)
	if err != nil {
		return nil, err
	}
	file, err := spool(folder)
	if err != nil {
		return nil, err
	}
	f := &fetching{repo: repo, layout: l, file: file, ready: make([]chan struct{}, len(l.members))}
	total := l.layers()
	f.progress = report{tell: progress, state: Progress{Total: total}}
	sum, err := f.run(ctx)
	if err != nil {
		_ = discard(file)
		return nil, err
	}
	return &Archive{
		Outline: Outline{Name: ArchiveName(image.Reference, image.Manifest), Size: l.size, Manifest: c.digest, Download: total},
		SHA256:  sum, Config: config.config, file: file,
	}, nil
}

// fetching is one download under way.
type fetching struct {
	repo     *repository
	layout   layout
	file     *os.File
	ready    []chan struct{} // closed when the member is in the file and verified
	progress report
}

// run fetches all blobs, some at a time, while the sum of the whole archive follows behind what is ready.
func (f *fetching) run(ctx context.Context) (string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := f.file.Truncate(f.layout.size); err != nil {
		return "", &diskError{cause: err}
	}
	for i := range f.ready {
		f.ready[i] = make(chan struct{})
	}
	queue := make(chan int, len(f.layout.members))
	for i := range f.layout.members {
		queue <- i
	}
	close(queue)

	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			buffer := make([]byte, chunk)
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := f.place(ctx, f.layout.members[i], buffer); err != nil {
					stop(err)
					return
				}
				close(f.ready[i])
			}
		})
	}
	sum, err := f.sum(ctx)
	stop(err)
	workers.Wait()
	if err != nil {
		return "", err
	}
	f.progress.finish()
	return sum, nil
}

// place writes one member to where it belongs.
func (f *fetching) place(ctx context.Context, m member, buffer []byte) error {
	if _, err := f.file.WriteAt(m.header, m.at); err != nil {
		return &diskError{cause: err}
	}
	if m.inline != nil {
		if _, err := f.file.WriteAt(m.inline, m.content()); err != nil {
			return &diskError{cause: err}
		}
		return nil
	}
	return twice(ctx, func() error {
		out := &placing{out: io.NewOffsetWriter(f.file, m.content()), progress: &f.progress}
		err := f.repo.blob(ctx, m.blob, out, buffer)
		if err != nil {
			f.progress.add(-out.counted)
		}
		return err
	})
}

// sum hashes the archive in its order, waiting for each member.
func (f *fetching) sum(ctx context.Context) (string, error) {
	sum, buffer := sha256.New(), make([]byte, chunk)
	at := int64(0)
	until := func(end int64) error {
		_, err := copyBuffer(sum, io.NewSectionReader(f.file, at, end-at), buffer)
		if err != nil {
			return &diskError{cause: err}
		}
		at = end
		return nil
	}
	for i, m := range f.layout.members {
		select {
		case <-f.ready[i]:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if err := until(m.end()); err != nil {
			return "", err
		}
	}
	if err := until(f.layout.size); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// placing writes a blob's bytes and counts them.
type placing struct {
	out      io.Writer
	progress *report
	counted  int64
}

func (p *placing) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	if err != nil {
		return n, &diskError{cause: err}
	}
	p.counted += int64(n)
	p.progress.add(int64(n))
	return n, nil
}

// report tells of progress, at most once in a while.
type report struct {
	tell  func(Progress)
	mu    sync.Mutex
	state Progress
	told  time.Time
}

const everySoOften = 2 * time.Second

func (r *report) add(n int64) {
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Done += n
	if time.Since(r.told) >= everySoOften {
		r.told = time.Now()
		r.tell(r.state)
	}
}

func (r *report) finish() {
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(r.state)
}
