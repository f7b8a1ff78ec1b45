import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;

/**
 * Lucene for peers.py: indexes a document per line, and answers queries with ids and scores.
 *
 * <p>index DOCUMENTS FOLDER K1 B writes one segment. search FOLDER K1 B THREADS SECONDS, followed by NAME FILE DEPTH
 * and `single` or `batch` for each workload, prints JSON: nanoseconds of each query, or of the batch, after warming up for
 * at least SECONDS. Searches count no hits beyond the depth, so block-max MAXSCORE can skip documents; the query cache is
 * off; a query runs in one thread, a batch in THREADS.
 */
public final class Peers {
  private static final String TEXT = "text";
  private static final String ID = "id";
  private static final int WARM_UP_QUERIES = 64; // queries of a batch that warm up the searcher

  public static void main(String[] args) throws Exception {
    if (args[0].equals("index")) {
      index(Path.of(args[1]), Path.of(args[2]), similarity(args[3], args[4]));
    } else {
      search(args);
    }
  }

  private static BM25Similarity similarity(String k1, String b) {
    return new BM25Similarity(Float.parseFloat(k1), Float.parseFloat(b));
  }

  private static void index(Path documents, Path folder, BM25Similarity similarity) throws IOException {
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer());
    config.setSimilarity(similarity).setRAMBufferSizeMB(256).setUseCompoundFile(false);
    config.setMergePolicy(new LogDocMergePolicy()); // keeps the order of the documents
    try (MMapDirectory directory = new MMapDirectory(folder);
        IndexWriter writer = new IndexWriter(directory, config);
        BufferedReader lines = Files.newBufferedReader(documents)) {
      long number = 0;
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Document document = new Document();
        document.add(new NumericDocValuesField(ID, number++));
        document.add(new TextField(TEXT, line, Field.Store.NO));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
  }

  private static void search(String[] args) throws Exception {
    long opening = System.nanoTime();
    DirectoryReader reader = DirectoryReader.open(new MMapDirectory(Path.of(args[1])));
    IndexSearcher searcher = new IndexSearcher(reader);
    opening = System.nanoTime() - opening;
    searcher.setQueryCache(null);
    searcher.setSimilarity(similarity(args[2], args[3]));
    int threads = Integer.parseInt(args[4]);
    double seconds = Double.parseDouble(args[5]);
    ExecutorService executor = Executors.newFixedThreadPool(threads);
    StringBuilder out = new StringBuilder("{\"open ns\": " + opening + ", \"segments\": " + reader.leaves().size());
    out.append(", \"version\": \"").append(org.apache.lucene.util.Version.LATEST).append("\", \"workloads\": {");
    for (int at = 6; at < args.length; at += 4) {
      List<Query> queries = queries(Path.of(args[at + 1]));
      int depth = Integer.parseInt(args[at + 2]);
      boolean isBatch = args[at + 3].equals("batch");
      out.append(at > 6 ? ", " : "").append('"').append(args[at]).append("\": ");
      if (isBatch) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        do {
          batch(searcher, executor, queries.subList(0, Math.min(WARM_UP_QUERIES, queries.size())), depth);
        } while (System.nanoTime() < end);
        long begin = System.nanoTime();
        batch(searcher, executor, queries, depth);
        out.append("{\"ns\": [").append(System.nanoTime() - begin).append("]}");
      } else {
        out.append(single(searcher, queries, depth, seconds));
      }
    }
    System.out.println(out.append("}}"));
    executor.shutdown();
  }

  private static String single(IndexSearcher searcher, List<Query> queries, int depth, double seconds)
      throws IOException {
    long end = System.nanoTime() + (long) (seconds * 1e9);
    for (int at = 0; at < queries.size() || System.nanoTime() < end; at++) {
      best(searcher, queries.get(at % queries.size()), depth);
    }
    long[] taken = new long[queries.size()];
    List<String> first = new ArrayList<>();
    for (int at = 0; at < queries.size(); at++) {
      long begin = System.nanoTime();
      Hit[] hits = best(searcher, queries.get(at), depth);
      taken[at] = System.nanoTime() - begin;
      long[] ids = Arrays.stream(hits).limit(10).mapToLong(Hit::id).toArray();
      first.add(Arrays.toString(ids));
    }
    return "{\"ns\": " + Arrays.toString(taken) + ", \"first\": " + first + "}";
  }

  private static void batch(IndexSearcher searcher, ExecutorService executor, List<Query> queries, int depth)
      throws Exception {
    List<Callable<Hit[]>> tasks = new ArrayList<>();
    for (Query query : queries) {
      tasks.add(() -> best(searcher, query, depth));
    }
    for (Future<Hit[]> answer : executor.invokeAll(tasks)) {
      answer.get();
    }
  }

  private record Hit(long id, float score) {}

  private static Hit[] best(IndexSearcher searcher, Query query, int depth) throws IOException {
    int size = Math.min(depth, searcher.getIndexReader().maxDoc());
    ScoreDoc[] best = searcher.search(query, new TopScoreDocCollectorManager(size, size)).scoreDocs;
    Integer[] byDocument = new Integer[best.length];
    Arrays.setAll(byDocument, rank -> rank);
    Arrays.sort(byDocument, Comparator.comparingInt(rank -> best[rank].doc));
    IndexReader reader = searcher.getIndexReader();
    NumericDocValues ids = reader.leaves().get(0).reader().getNumericDocValues(ID);
    Hit[] hits = new Hit[best.length];
    for (int rank : byDocument) {
      ids.advanceExact(best[rank].doc);
      hits[rank] = new Hit(ids.longValue(), best[rank].score);
    }
    return hits;
  }

  private static List<Query> queries(Path file) throws IOException {
    List<Query> queries = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      BooleanQuery.Builder query = new BooleanQuery.Builder();
      for (String term : line.split(" ")) {
        query.add(new TermQuery(new Term(TEXT, term)), BooleanClause.Occur.SHOULD);
      }
      queries.add(query.build());
    }
    return queries;
  }
}
