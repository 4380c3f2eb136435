import java.util.concurrent.atomic.AtomicLong;

import org.apache.apex.api.EmbeddedAppLauncher;
import org.apache.apex.api.Launcher;
import org.apache.hadoop.conf.Configuration;

import com.datatorrent.api.Attribute;
import com.datatorrent.api.Context.DAGContext;
import com.datatorrent.api.Context.OperatorContext;
import com.datatorrent.api.Context.PortContext;
import com.datatorrent.api.DAG;
import com.datatorrent.api.DAG.Locality;
import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.api.StreamingApplication;
import com.datatorrent.common.partitioner.StatelessPartitioner;
import com.datatorrent.common.util.BaseOperator;
import com.datatorrent.lib.io.block.AbstractBlockReader.ReaderRecord;
import com.datatorrent.lib.io.block.AbstractFSBlockReader.AbstractFSReadAheadLineReader;
import com.datatorrent.lib.io.block.BlockMetadata.FileBlockMetadata;
import com.datatorrent.lib.io.fs.AbstractFileOutputOperator;
import com.datatorrent.lib.io.fs.FileSplitterInput;

/**
 * Reads one file with several readers, drops the lines that begin with a dot, writes a file for each block.
 *
 * <p>The filter and the writer run in the thread of their reader, which takes the least processor time.
 */
public class Ingest implements StreamingApplication {
  private static final AtomicLong FIRST = new AtomicLong();
  private static final AtomicLong LAST = new AtomicLong();

  private static final Long HOUR = 3_600_000L;

  private final String source;
  private final String target;
  private final String state;
  private final long blockSize;
  private final int readers;

  public Ingest(String source, String target, String state, long blockSize, int readers) {
    this.source = source;
    this.target = target;
    this.state = state;
    this.blockSize = blockSize;
    this.readers = readers;
  }

  /** Run the application to its end; the seconds from its first record to its last. */
  public double launch() throws Exception {
    FIRST.set(Long.MAX_VALUE);
    LAST.set(Long.MIN_VALUE);
    EmbeddedAppLauncher<?> launcher = Launcher.getLauncher(Launcher.LaunchMode.EMBEDDED);
    launcher.launchApp(this, new Configuration(false), new Attribute.AttributeMap.DefaultAttributeMap());
    return (LAST.get() - FIRST.get()) / 1e9;
  }

  @Override
  public void populateDAG(DAG dag, Configuration configuration) {
    Splitter splitter = dag.addOperator("File-splitter", new Splitter());
    splitter.getScanner().setFiles(source);
    splitter.setBlockSize(blockSize);
    splitter.setBlocksThreshold(Integer.MAX_VALUE);
    LineReader reader = dag.addOperator("Block-reader", new LineReader());
    reader.setCollectStats(false);
    Filter filter = dag.addOperator("Filter", new Filter());
    Writer writer = dag.addOperator("Record-writer", new Writer());
    writer.setFilePath(target);
    writer.setExpireStreamAfterAccessMillis(HOUR); // a stream that expires, after 30 s, loses its last lines
    // its own partitioner begins with one reader, and adds others only while more blocks wait
    dag.setOperatorAttribute(reader, OperatorContext.PARTITIONER, new StatelessPartitioner<LineReader>(readers));
    dag.setInputPortAttribute(filter.input, PortContext.PARTITION_PARALLEL, true);
    dag.setInputPortAttribute(writer.input, PortContext.PARTITION_PARALLEL, true);
    dag.setAttribute(DAGContext.APPLICATION_PATH, state);
    dag.addStream("file-block metadata", splitter.blocksMetadataOutput, reader.blocksMetadataInput);
    dag.addStream("records", reader.messages, filter.input).setLocality(Locality.THREAD_LOCAL);
    dag.addStream("filtered-records", filter.output, writer.input).setLocality(Locality.THREAD_LOCAL);
  }

  /** Ends the application after the blocks of the file; without this, it would wait for more files. */
  public static class Splitter extends FileSplitterInput {
    private boolean split;

    @Override
    protected boolean processFileInfo(FileInfo file) {
      split = super.processFileInfo(file);
      return split;
    }

    @Override
    public void emitTuples() {
      super.emitTuples();
      if (split) {
        throw new ShutdownException();
      }
    }
  }

  /** A record is a line. When a block is read, its lines are written, because all this happens in one thread. */
  public static class LineReader extends AbstractFSReadAheadLineReader<String> {
    @Override
    protected void processBlockMetadata(FileBlockMetadata block) {
      FIRST.accumulateAndGet(System.nanoTime(), Math::min);
      super.processBlockMetadata(block);
      LAST.accumulateAndGet(System.nanoTime(), Math::max);
    }

    @Override
    protected String convertToRecord(byte[] bytes) {
      return new String(bytes);
    }
  }

  /** Drops the lines that begin with a dot. */
  public static class Filter extends BaseOperator {
    public final transient DefaultOutputPort<ReaderRecord<String>> output = new DefaultOutputPort<>();
    public final transient DefaultInputPort<ReaderRecord<String>> input = new DefaultInputPort<ReaderRecord<String>>() {
      @Override
      public void process(ReaderRecord<String> line) {
        if (!line.getRecord().startsWith(".")) {
          output.emit(line);
        }
      }
    };
  }

  /** Writes the lines of each block to a file. */
  public static class Writer extends AbstractFileOutputOperator<ReaderRecord<String>> {
    @Override
    protected String getFileName(ReaderRecord<String> line) {
      return Long.toHexString(line.getBlockId());
    }

    @Override
    protected byte[] getBytesForTuple(ReaderRecord<String> line) {
      return (line.getRecord() + "\n").getBytes();
    }
  }
}
