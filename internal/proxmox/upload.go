package proxmox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	pve "github.com/luthermonson/go-proxmox"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// direct is the client's own way to the server. Uploads take it: the client's cannot be cancelled.
type direct struct {
	carrier *http.Client
	base    string // "https://host:8006/api2/json"
	agent   string
}

// archiveFile are the file names that uploads may have and deletions may name: Proxmox keeps them as they are, and none of them
// is a template that somebody else put there.
var archiveFile = regexp.MustCompile(`^pvrx-[A-Za-z0-9_.-]+\.tar$`)

var sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)

// UploadTemplate puts an archive of size bytes on a storage as a container template and returns its volume id. The server
// compares it with sha256 (hexadecimal digits) before it keeps it. A file of the same name is replaced without a word. Nothing is
// sent twice; cancelled before the last byte has left, nothing was done.
func (h *Host) UploadTemplate(ctx context.Context, node, storage, name, sha256 string, content io.ReaderAt, size int64) (guest.VolumeID, error) {
	ref := guest.Ref{Node: node}
	r := request{op: fmt.Sprintf("upload %s to storage %s on node %s", name, storage, node), ref: ref, method: http.MethodPost}
	r.path = path("nodes", node, "storage", storage, "upload")
	switch {
	case !archiveFile.MatchString(name):
		return guest.VolumeID{}, refuse(r.op, ref, guest.OutcomeRefused, "the port uploads only archives that are named pvrx-….tar")
	case !sha256Text.MatchString(sha256) || size <= 0:
		return guest.VolumeID{}, refuse(r.op, ref, guest.OutcomeRefused, "its size or its checksum is missing")
	}
	u, err := newUpload(name, sha256, content, size)
	if err != nil {
		return guest.VolumeID{}, refuse(r.op, ref, guest.OutcomeRefused, "%v", err)
	}
	since := time.Now().Unix()
	raw, failed := h.upload(ctx, r, u)
	done, failed := h.started(ctx, job{request: r, types: []string{"imgcopy"}}, since, raw, failed)
	if failed != nil {
		return guest.VolumeID{}, failed
	}
	if done.log == nil {
		done.log = h.taskLog(ctx, r, done.task)
	}
	// Fields that arrive out of order are dropped in silence, and then nothing is compared.
	compared := func(line string) bool { return strings.Contains(line, "checksum verified") }
	if done.log != nil && !slices.ContainsFunc(done.log, compared) {
		return guest.VolumeID{}, &Error{Op: r.op, Guest: ref, UPID: done.task.text, Kind: guest.OutcomeFailed, Words: "the server kept the file without comparing its checksum"}
	}
	return guest.VolumeID{Storage: storage, Name: "vztmpl/" + name}, nil
}

// DeleteTemplate deletes an archive that UploadTemplate put on a storage, and no other template. One that is gone already is no
// error. Guests made from it are not affected.
func (h *Host) DeleteTemplate(ctx context.Context, node string, volume guest.VolumeID) error {
	r := request{op: fmt.Sprintf("delete %s on node %s", volume, node), ref: guest.Ref{Node: node}, method: http.MethodDelete}
	name, isTemplate := strings.CutPrefix(volume.Name, "vztmpl/")
	if !isTemplate || !archiveFile.MatchString(name) {
		return refuse(r.op, r.ref, guest.OutcomeRefused, "the port deletes only archives that are named pvrx-….tar")
	}
	r.path = path("nodes", node, "storage", volume.Storage, "content", volume.Storage+":vztmpl", name)
	r.announced = []string{r.path}
	_, err := h.run(ctx, job{request: r, types: []string{"imgdel"}, id: volume.Storage})
	return err
}

// upload is the body of one upload: what stands before the file, the file, what stands behind it.
type upload struct {
	kind       string // the Content-Type, which tells the boundary
	head, tail []byte
	content    io.ReaderAt
	size       int64

	sent    atomic.Bool // the last byte has been handed over
	touched func()      // called whenever bytes are asked for
}

// newUpload arranges the parts in the one order in which Proxmox reads them. Any other loses a field.
func newUpload(name, sha256 string, content io.ReaderAt, size int64) (*upload, error) {
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for _, field := range [][2]string{{"content", "vztmpl"}, {"checksum-algorithm", "sha256"}, {"checksum", sha256}} {
		if err := w.WriteField(field[0], field[1]); err != nil {
			return nil, err
		}
	}
	if _, err := w.CreateFormFile("filename", name); err != nil {
		return nil, err
	}
	before := text.Len()
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &upload{
		kind: w.FormDataContentType(), head: text.Bytes()[:before], tail: text.Bytes()[before:], content: content, size: size,
		touched: func() {},
	}, nil
}

func (u *upload) length() int64 { return int64(len(u.head)+len(u.tail)) + u.size }

// body returns the body from its beginning: a connection that turns out to be closed before anything was written is replaced.
func (u *upload) body() (io.ReadCloser, error) {
	return io.NopCloser(&uploading{upload: u, parts: io.MultiReader(bytes.NewReader(u.head), io.NewSectionReader(u.content, 0, u.size), bytes.NewReader(u.tail))}), nil
}

type uploading struct {
	upload *upload
	parts  io.Reader
	read   int64
}

func (u *uploading) Read(p []byte) (int, error) {
	u.upload.touched()
	n, err := u.parts.Read(p)
	u.read += int64(n)
	if u.read == u.upload.length() {
		u.upload.sent.Store(true)
	}
	return n, err
}

var (
	errUploadStalled   = errors.New("the server takes no more bytes")
	errUploadCancelled = errors.New("it was cancelled while it was being sent")
)

// upload sends the request once. Unlike other changes it can be cancelled while it is being sent: the server does nothing
// before it has all. It takes as long as bytes flow.
func (h *Host) upload(ctx context.Context, r request, u *upload) (json.RawMessage, *Error) {
	if err := guard(r); err != nil {
		return nil, &Error{Op: r.op, Guest: r.ref, Kind: guest.OutcomeRefused, Words: err.Error()}
	}
	if ctx.Err() != nil {
		return nil, &Error{Op: r.op, Guest: r.ref, Kind: guest.OutcomeUnreachable, Words: "it was cancelled before it was sent", cause: ctx.Err()}
	}
	sending, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	watch := time.AfterFunc(h.pace.Request, func() { cancel(errUploadStalled) })
	defer watch.Stop()
	u.touched = func() { watch.Reset(h.pace.Request) }
	defer context.AfterFunc(ctx, func() {
		if !u.sent.Load() {
			cancel(errUploadCancelled)
		}
	})()

	data, err := h.direct.send(sending, h.login, r.path, u)
	if err == nil {
		return data, nil
	}
	stopped := context.Cause(sending)
	e := translate(err, question{op: r.op, ref: r.ref, wrote: u.sent.Load(), slow: errors.Is(stopped, errUploadStalled) && u.sent.Load()})
	e.Words = hide(e.Words, h.login.secrets())
	if e.Status == http.StatusUnauthorized {
		h.login.refused()
	}
	if e.lost && !u.sent.Load() {
		// Without its end, an upload begins nothing.
		e.Kind = guest.OutcomeUnreachable
		switch {
		case errors.Is(stopped, errUploadCancelled):
			e.Words, e.cause = errUploadCancelled.Error(), ctx.Err()
		case errors.Is(stopped, errUploadStalled):
			e.Words = errUploadStalled.Error()
		default:
			e.Words = "it broke off before all was sent (" + e.Words + ")"
		}
	}
	return nil, e
}

// send posts an upload and returns the answer's data.
func (d direct) send(ctx context.Context, identity login, path string, u *upload) (json.RawMessage, error) {
	body, err := u.body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, body)
	if err != nil {
		return nil, err
	}
	req.GetBody, req.ContentLength = u.body, u.length()
	req.Header.Set("Content-Type", u.kind)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", d.agent)
	if err := identity.sign(req); err != nil {
		return nil, err
	}
	answer, err := d.carrier.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	var said struct {
		Data    json.RawMessage  `json:"data"`
		Message words            `json:"message"`
		Errors  map[string]words `json:"errors"`
	}
	unread := json.Unmarshal(text, &said)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		refusal := &pve.APIError{StatusCode: answer.StatusCode, Status: answer.Status, Message: string(said.Message), Errors: map[string]string{}}
		if refusal.Message == "" {
			_, refusal.Message, _ = strings.Cut(answer.Status, " ")
		}
		for key, value := range said.Errors {
			refusal.Errors[key] = string(value)
		}
		return nil, refusal
	}
	return said.Data, unread
}
