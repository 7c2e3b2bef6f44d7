import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.cert.X509Certificate;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/** Uploads.java SECONDS, then pairs URL SIZE: posts a body of SIZE bytes to each URL, and prints a line with the version and the status. */
class Uploads {
    public static void main(String[] args) throws Exception {
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, new TrustManager[] {new TrustAll()}, null);
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(tls).build();
        for (int i = 1; i < args.length; i += 2) {
            byte[] body = new byte[Integer.parseInt(args[i + 1])];
            HttpRequest request = HttpRequest.newBuilder(URI.create(args[i])).timeout(Duration.ofSeconds(Long.parseLong(args[0])))
                .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
            try {
                HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
                System.out.println((response.version() == HttpClient.Version.HTTP_2 ? "HTTP/2 " : "HTTP/1.1 ") + response.statusCode());
            } catch (Exception e) {
                System.out.println(e);
            }
        }
    }

    /** Accepts the certificate of a test. */
    private static class TrustAll extends X509ExtendedTrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String type) {}
        public void checkClientTrusted(X509Certificate[] chain, String type, java.net.Socket socket) {}
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        public void checkServerTrusted(X509Certificate[] chain, String type) {}
        public void checkServerTrusted(X509Certificate[] chain, String type, java.net.Socket socket) {}
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
    }
}
