package realcluster

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
)

// servesRules is the path of the kind as client-go knows it.
const servesRules = "/apis/resource.k8s.io/v1/devicetaintrules"

// olderRules lets client-go, which knows DeviceTaintRules as resource.k8s.io/v1 alone, speak with a server that has them in an earlier version, with
// the same fields. It changes the version's name and nothing else, on the way there and back.
type olderRules struct {
	next    http.RoundTripper
	version string
}

func (o olderRules) RoundTrip(request *http.Request) (*http.Response, error) {
	rest, is := strings.CutPrefix(request.URL.Path, servesRules)
	if !is {
		return o.next.RoundTrip(request)
	}
	newer, older := []byte(`"resource.k8s.io/v1"`), []byte(`"resource.k8s.io/`+o.version+`"`)
	request = request.Clone(request.Context())
	request.URL.Path = strings.Replace(servesRules, "/v1/", "/"+o.version+"/", 1) + rest
	if request.Body != nil {
		text, err := io.ReadAll(request.Body)
		_ = request.Body.Close()
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, newer, older)
		request.Body, request.ContentLength, request.GetBody = io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
	}
	response, err := o.next.RoundTrip(request)
	if err == nil {
		response.Body = renamed(response.Body, older, newer)
		response.ContentLength = -1
		response.Header.Del("Content-Length")
	}
	return response, err
}

// renamed is the same text, line by line, as a watch sends its events, with other words for some.
func renamed(from io.ReadCloser, old, new []byte) io.ReadCloser {
	read, write := io.Pipe()
	go func() {
		defer func() { _ = from.Close() }()
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			if _, ended := write.Write(bytes.ReplaceAll(line, old, new)); ended != nil {
				return // whoever reads has closed it
			}
			if err != nil {
				_ = write.CloseWithError(err)
				return
			}
		}
	}()
	return read
}
