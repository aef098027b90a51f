package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// warehouse is a storage in memory.
type warehouse struct {
	mu       sync.Mutex
	files    map[guest.VolumeID]guest.Bytes
	uploads  int
	broken   error
	checksum string // of the last upload, as the server would compute it
	told     string // what the client said it would be
}

func (w *warehouse) Content(_ context.Context, _, storage string, _ guest.VMID) (rows []guest.StoredVolume, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, size := range w.files {
		if id.Storage == storage {
			rows = append(rows, guest.StoredVolume{ID: id, Size: size})
		}
	}
	return rows, w.broken
}

func (w *warehouse) UploadTemplate(_ context.Context, _, storage, name, sha string, content io.ReaderAt, size int64) (guest.VolumeID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(content, 0, size)); err != nil {
		return guest.VolumeID{}, err
	}
	w.checksum, w.told = hex.EncodeToString(hash.Sum(nil)), sha
	id := guest.VolumeID{Storage: storage, Name: "vztmpl/" + name}
	w.files[id] = guest.Bytes(size)
	w.uploads++
	return id, nil
}

func (w *warehouse) DeleteTemplate(_ context.Context, _ string, volume guest.VolumeID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.files, volume)
	return nil
}

// carrierOf is archives between a shelf and a warehouse; a new one knows nothing of what the last one asked, as in a new run.
func carrierOf(t *testing.T, s *shelf, w *warehouse) *archives {
	t.Helper()
	images, err := oci.NewResolver(oci.Settings{PlainHTTP: []string{s.host}})
	if err != nil {
		t.Fatal(err)
	}
	return newArchives(images, w)
}

func wantedImage(s *shelf, digest string) preview.Image {
	return preview.Image{Reference: s.ref("app:1"), Repository: s.ref("app"), Digest: digest, Manifest: digest, Arch: "amd64"}
}

func TestArchiveIsFetchedOnlyWhenItIsNotThere(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, w := newShelf(t), &warehouse{files: map[guest.VolumeID]guest.Bytes{}}
	digest := s.put("app:1", imageFor(t, "1", imageConfig()))
	id, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", wantedImage(s, digest))
	if err != nil {
		t.Fatal(err)
	}
	if id.Storage != "local" || !strings.HasPrefix(id.Name, "vztmpl/pvrx-app-"+strings.TrimPrefix(digest, "sha256:")[:12]) || w.uploads != 1 {
		t.Errorf("%s after %d uploads", id, w.uploads)
	}
	if w.checksum != w.told {
		t.Errorf("the checksum is %s and was said to be %s", w.checksum, w.told)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	s.forget()
	again, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", wantedImage(s, digest))
	if err != nil || again != id || w.uploads != 1 || s.count("GET blobs") != 0 {
		t.Errorf("again: %s, %v, %d uploads, asked %v", again, err, w.uploads, s.asked)
	}

	w.files[id]-- // cut short by somebody
	if _, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", wantedImage(s, digest)); err != nil || w.uploads != 2 {
		t.Errorf("of another size: %v, %d uploads", err, w.uploads)
	}
	if _, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "nas", wantedImage(s, digest)); err != nil || w.uploads != 3 {
		t.Errorf("on another storage: %v, %d uploads", err, w.uploads)
	}
	if err := carrierOf(t, s, w).Remove(t.Context(), "pve1", id); err != nil || len(w.files) != 1 {
		t.Errorf("removed: %v, left %v", err, w.files)
	}
}

// Without its registry an archive that is there serves, and one that is not is an error; nothing is guessed about a storage
// that cannot be listed.
func TestArchiveWithoutItsRegistry(t *testing.T) {
	t.Parallel()
	s, w := newShelf(t), &warehouse{files: map[guest.VolumeID]guest.Bytes{}}
	digest := s.put("app:1", imageFor(t, "1", imageConfig()))
	id, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", wantedImage(s, digest))
	if err != nil {
		t.Fatal(err)
	}
	s.putAway(true)
	if again, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", wantedImage(s, digest)); err != nil || again != id {
		t.Errorf("%s, %v", again, err)
	}
	if _, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "nas", wantedImage(s, digest)); err == nil {
		t.Error("nothing was there, and nothing was said")
	}
	w.broken = errors.New("storage 'local' is not available")
	if _, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", wantedImage(s, digest)); err == nil || !strings.Contains(err.Error(), "is not available") {
		t.Errorf("a storage that cannot be listed: %v", err)
	}
}

// What is recorded of an image may name its digest alone, and a tag that has moved or is gone is never asked for.
func TestArchiveIsFetchedByDigest(t *testing.T) {
	t.Parallel()
	s, w := newShelf(t), &warehouse{files: map[guest.VolumeID]guest.Bytes{}}
	digest := s.put("app:1", imageFor(t, "1", imageConfig()))
	s.put("app:1", imageFor(t, "2", imageConfig()))
	image := wantedImage(s, digest)
	image.Reference = ""
	id, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", image)
	if err != nil || !strings.Contains(id.Name, strings.TrimPrefix(digest, "sha256:")[:12]) {
		t.Errorf("%s, %v", id, err)
	}
	image.Digest = "latest"
	if _, err := carrierOf(t, s, w).Place(t.Context(), "pve1", "local", image); err == nil {
		t.Error("an image without a digest is no error")
	}
}

// Whoever waits for another's image to arrive leaves as soon as the run is cancelled.
func TestArchiveIsNotWaitedForWhenTheRunIsCancelled(t *testing.T) {
	t.Parallel()
	s, w := newShelf(t), &warehouse{files: map[guest.VolumeID]guest.Bytes{}}
	digest := s.put("app:1", imageFor(t, "1", imageConfig()))
	a := carrierOf(t, s, w)
	a.turn <- struct{}{} // another image is on its way
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Place(ctx, "pve1", "local", wantedImage(s, digest)); !errors.Is(err, context.Canceled) || w.uploads != 0 {
		t.Errorf("%v after %d uploads", err, w.uploads)
	}
}
